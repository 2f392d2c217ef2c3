"""How far to trust a model: measures and cross-validation, causes of scores that are too good, and its rivals."""
