"""The learning problem: min Σ wᵢ loss(yᵢ, f(xᵢ)) + ½ alpha ‖f‖² over f = Σ cᵢ k(xᵢ, ·) + tail.

By the representer theorem the minimiser over the whole Hilbert space has this form, so n coefficients are all there
is to find (lectures 001 to 003). The tail (an intercept, a polynomial) is not penalised.
"""
