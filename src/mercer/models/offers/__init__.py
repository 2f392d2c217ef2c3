"""How each model of the menu chooses its parameters, within a time that is planned before it begins."""
