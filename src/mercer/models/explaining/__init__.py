"""Why a fitted model predicts what it predicts: its important columns, their effects, and the reasons for a row."""
