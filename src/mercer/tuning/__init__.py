"""Tuning: criteria on Gram matrices, their derivatives, and the search for their optimum.

Two criteria judge a kernel and a penalty without a validation set: how well each point follows from all others
(leave-one-out), and how probable the targets were (evidence). Both are closed forms.
"""
