"""Tuning: criteria on Gram matrices, their derivatives, and the search for their optimum.

Two questions can be asked of a kernel and a penalty without spending data on a validation set: how well does each point
follow from all others (leave-one-out), and how probable were the targets (evidence). Both are closed forms.
"""
