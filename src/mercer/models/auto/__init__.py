"""From a table to a model without a decision by the user: what is tried, what it may cost, and what is chosen."""
