"""The algebra of kernels: expressions as frozen values, the rules that combine them, and the proof at each rule.

Sums, products, positive multiples, powers, polynomials with coefficients ≥ 0, exponentials, rescalings f(x) k(x, z)
f(z) and compositions k(φ(x), φ(z)) of kernels are kernels. Each rule is a node; an expression prints as text that
`parse` reads back.
"""
