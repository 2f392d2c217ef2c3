"""Mercer: kernel methods with proofs.

A kernel says what *similar* means. Everything else (the Gram matrix, the dual problem, the solver, the fitted
function) is the same for vectors, categories, sets, texts and mixed tables.

Every public name is on this page. Names load when they are first used, so that `import mercer` costs nothing.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

__version__ = "0.1.0"

_HOME = {
    "mercer.kernels.base": "Kernel Similarity Tags Weight",
    "mercer.kernels.about": "About",
    "mercer.kernels.spaces": "Space",
    "mercer.kernels.vocabulary": "register",
    "mercer.kernels.algebra.parameters": "Fixed nonnegative positive real",
    "mercer.kernels.algebra.operators": "exp",
    "mercer.kernels.vectors.dot": "Linear Polynomial Bilinear Tanh",
    "mercer.kernels.vectors.arccosine": "ArcCosine",
    "mercer.kernels.vectors.radial": "Gaussian RationalQuadratic",
    "mercer.kernels.vectors.matern": "Matern",
    "mercer.kernels.vectors.stationary": "Laplacian Periodic",
    "mercer.kernels.vectors.fingerprints": "Tanimoto",
    "mercer.kernels.vectors.histograms": "Hellinger HistogramIntersection MinMax",
    "mercer.kernels.vectors.chi_squared": "AdditiveChiSquared ChiSquared",
    "mercer.kernels.discrete": "Delta Hamming",
    "mercer.kernels.tables.categories": "Categorical",
    "mercer.kernels.sets": "Dice Intersection Jaccard",
    "mercer.kernels.tables.additive": "Additive",
    "mercer.kernels.strings.spectrum": "Spectrum",
    "mercer.kernels.strings.ngrams": "NGrams",
    "mercer.kernels.strings.gapped": "GappedKmers Mismatch",
    "mercer.kernels.strings.degree": "WeightedDegree",
    "mercer.kernels.strings.subsequence": "Subsequence",
    "mercer.kernels.strings.alignment": "LocalAlignment SmithWaterman EditSimilarity",
    "mercer.kernels.strings.tfidf": "TfIdf WeightedCounts",
    "mercer.data.graphs": "Graph",
    "mercer.data.trees": "Tree",
    "mercer.data.tu": "read_tu",
    "mercer.data.batches": "Batches",
    "mercer.data.dask_files": "DaskFiles",
    "mercer.data.dask_rows": "DaskRows",
    "mercer.kernels.graphs.graphlets": "Graphlet",
    "mercer.kernels.graphs.histograms": "EdgeHistogram VertexHistogram",
    "mercer.kernels.graphs.paths": "ShortestPath",
    "mercer.kernels.graphs.propagation": "Propagation",
    "mercer.kernels.graphs.refinement": "WeisfeilerLehman WeisfeilerLehmanAssignment",
    "mercer.kernels.graphs.walks": "RandomWalk",
    "mercer.kernels.series.signature": "Signature SignaturePDE",
    "mercer.kernels.series.alignment": "DTW GlobalAlignment",
    "mercer.kernels.images": "Patches",
    "mercer.kernels.custom": "FromFunction FromFeatures Precomputed",
    "mercer.kernels.algebra.nodes": "Constant",
    "mercer.kernels.algebra.linear": "Sum Product Scaled WeightProduct",
    "mercer.kernels.algebra.entrywise": "Power Poly Exp",
    "mercer.kernels.algebra.rescaling": "Normalized Rescaled",
    "mercer.kernels.trees.fragments": "PartialTree SubsetTree Subtree",
    "mercer.kernels.algebra.parts": "Convolution",
    "mercer.kernels.distributions": "MeanEmbedding",
    "mercer.kernels.algebra.views": "On After WeightOn",
    "mercer.kernels.tables.missing": "Missing",
    "mercer.kernels.tables.typed": "Typed",
    "mercer.kernels.weights": "Uniform Triangular Epanechnikov Biweight Tricube",
    "mercer.kernels.vectors.splines": "Multiquadric Polyharmonic ThinPlate",
    "mercer.kernels.tables.rule": "TableKernel table_kernel",
    "mercer.kernels.vectors.median": "median_gaussian",
    "mercer.kernels.algebra.expression": "parse",
    "mercer.files": "load",
    "mercer.kernels.algebra.proof": "Axiom Proof Unproven",
    "mercer.kernels.validity.check": "check repair",
    "mercer.kernels.validity.refute": "refute",
    "mercer.features.molecules": "Descriptors Fingerprint fingerprint molecule_graph",
    "mercer.features": "fourier_features hashed_features taylor_features",
    "mercer.features.images": "patch_features pixels",
    "mercer.features.series": "add_time base_point lead_lag",
    "mercer.rkhs.expansion": "Expansion",
    "mercer.rkhs.posterior": "Posterior",
    "mercer.rkhs.geometry": "centre distance distance_to_mean mean_coordinates nearest",
    "mercer.rkhs.embedding": "hsic mean_embedding mmd",
    "mercer.smoothing.distributed": "sums_on_cluster",
    "mercer.models.least_squares.bayesian": "BayesianLinearRegression",
    "mercer.models.bounded": "BoundedRegressor",
    "mercer.models.calibrated": "CalibratedClassifier",
    "mercer.models.calibration": "calibration",
    "mercer.models.planning": "Plan plan",
    "mercer.models.least_squares.gaussian_process": "GaussianProcessRegressor",
    "mercer.models.least_squares.kernel_ridge": "KernelRidge",
    "mercer.models.least_squares.rbf_interpolator": "RBFInterpolator",
    "mercer.models.least_squares.rbf_network": "RBFNetwork",
    "mercer.models.least_squares.ridge": "Ridge",
    "mercer.models.svm.one_class": "OneClassSVM",
    "mercer.models.svm.svc": "SVC",
    "mercer.models.svm.nu_svc": "NuSVC",
    "mercer.models.progress": "SolverProgress",
    "mercer.models.local.nadaraya_watson": "NadarayaWatsonClassifier NadarayaWatsonRegressor",
    "mercer.models.local.local_regression": "LocalRegression",
    "mercer.models.density.parzen": "ParzenDensity",
    "mercer.models.density.conditional_density": "ConditionalDensity",
    "mercer.models.local.neighbors": "KernelNeighborsClassifier KernelNeighborsRegressor",
    "mercer.models.conformal": "ConformalRegressor",
    "mercer.models.svm.svr": "KernelQuantileRegressor NuSVR SVR",
    "mercer.models.least_squares.classifier": "LeastSquaresClassifier",
    "mercer.models.perceptron.perceptron": "KernelPerceptron Perceptron",
    "mercer.models.likelihood.logistic": "KernelLogisticRegression LogisticRegression",
    "mercer.models.likelihood.glm": "GLM KernelGLM",
    "mercer.models.discriminant.discriminants": "FisherDiscriminant LinearDiscriminant",
    "mercer.models.discriminant.kernel_discriminants": "KernelDiscriminant KernelFisherDiscriminant",
    "mercer.models.kernel_pca": "KernelPCA",
    "mercer.models.auto.regressor": "AutoRegressor",
    "mercer.models.auto.classifier": "AutoClassifier",
    "mercer.models.tune": "tune",
    "mercer.models.judging.comparison": "compare",
    "mercer.models.judging.thresholds": "ThresholdCurve threshold_curve",
    "mercer.models.explaining.importance": "feature_importance",
    "mercer.models.explaining.effects": "interactions partial_dependence",
    "mercer.models.explaining.contributions": "contributions",
    "mercer.models.explaining.similar": "similar_rows",
    "mercer.models.likelihood.separation": "Separable",
    "mercer.errors": "InvalidInput RuleBroken",
}
_PACKAGES = ("features", "gram", "kernels", "models", "plot", "report", "rkhs", "testing")
_MODULES = {name: f"mercer.{name}" for name in _PACKAGES} | {
    "families": "mercer.problems.families",
    "links": "mercer.problems.links",
}
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [*sorted(_NAMES), *_MODULES]


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        value = getattr(_import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = _import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}{_hint(name)}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    from difflib import get_close_matches

    elsewhere = {
        "RBF": "Gaussian",
        "SquaredExponential": "Gaussian",
        "DotProduct": "Linear",
        "ConstantKernel": "Constant",
    }
    close = [elsewhere[name]] if name in elsewhere else get_close_matches(name, __all__, 1)
    return f". Did you mean {close[0]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
