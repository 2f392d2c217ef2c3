"""Sizes at which solvers change their way of computing, and counts of operations by which they compare ways.

They steer time and memory; results depend on them within their tolerance only.
"""

# -- which precision and which factor
FLOAT64_ROWS = 1000
"""Rows: up to here a float64 factor costs less than a float32 one and the iterations that restore the digits."""
STORED_ROWS = 4000
"""Rows: up to here the float64 matrix is stored from the start, beyond it only if iterations need it."""
FACTORS = 8
"""Penalties: from here on one eigendecomposition costs less than a Cholesky factor for each."""
SOLUTIONS = 20
"""The same if a solution takes a float32 factor, which is cheaper."""
FEW_COLUMNS = 8
"""Columns of a right-hand side: up to here they are solved one by one, beyond it as a matrix."""
FACTOR_ITERATIONS, PIVOTED_ITERATIONS = 15, 120
"""Iterations with a float32 factor and with pivoted columns: more cost more than the next safer way."""
PIVOTED_ROWS, PIVOTED_SHARE = 3000, 0.05
"""Rows, and alpha in units of the mean k(x, x): from both on, pivoted columns precondition better than any factor."""
PIVOTED_RANK = 500
"""Pivoted columns: fewer need more iterations, more take longer to compute."""

# -- Nyström and Newton
SAMPLED_FLOPS = 4e9
"""Multiply-adds of a system on centres: up to here it is computed from all rows, beyond it from a sample of them."""
ENTRY_FLOPS = 50.0
"""The time of one entry of K_nm in a pass over the rows, in multiply-adds of a matrix product."""
CHEAP_FLOPS = 1e7
"""Multiply-adds of a Newton system: up to here it is computed anew for nearly every step."""
FACTORED_FEATURES = 4000
"""Features, or rows of a Gram matrix in place of them: up to here their matrix is factorised in Newton's method."""
NARROW_FEATURES = 300
"""Features: up to here the curvature of all rows costs about as much as a step, and no sample replaces it."""

# -- frequencies
FACTORED_FREQUENCIES = 2000
"""Frequencies whose system is factorised, as the preconditioner of all: more take longer than the steps they save."""
MOST_FREQUENCIES = 2_000_000
"""Frequencies: up to here the iterations cost less than Nyström centres of the same accuracy."""

# -- principal components
FEW_ROWS, MANY_VECTORS = 250, 0.08
"""Rows, and the share of eigenvectors: up to the first, or above the second, all eigenvectors cost less than some."""
PRODUCT_ROWS = 512
"""Rows of a stored K that one thread multiplies at a time."""

# -- support vector machines
DOUBLE_VARIABLES = 400
"""Variables: up to here float64 values alone are faster than float32 ones that float64 corrects."""
WHOLE_VARIABLES = 4500
"""Variables: up to here the whole matrix is one working set."""
FIRST_VARIABLES, SET_VARIABLES = 256, 2048
"""Variables of the first working set and of the largest."""
EXACT_VALUES = 4_000_000
"""Kernel values of a gradient: up to here all are computed in float64."""

# -- perceptrons
EXAMPLES = 1024
"""Examples whose kernel values are computed at once: fewer cost more calls, more compute values that change no step."""
PRIMAL_EXAMPLES = 8192
"""The same for rows of explicit features, which need no kernel values."""
SEGMENT_VECTORS = 2048
"""Support vectors that are kept together, in the layout that products need."""
TRIANGLE_ROWS = 128
"""Rows of a triangular inverse that are multiplied at a time: more multiply zeros, fewer cost more calls."""
