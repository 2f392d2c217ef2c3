"""The schema of model files: one declaration per class, by which files are written and read.

Every attribute of a fitted model has a kind here. A saved value must fit its declaration, so that an undeclared
attribute cannot be saved; a value that is read must fit before anything is built from it, so that no number of a file
is used as an index or a length beyond its arrays.

A section names a module. An unindented line names a class with the dimensions that others may refer to, and after < the
declarations that it includes. An indented line names attributes and their kind; a `?` marks attributes that not every
model has. "call" means that the class is built by calling it with its attributes in this order; dataclasses and named
tuples are built from their fields, and all other classes get their attributes set. A line that is indented twice
continues the one before. Kinds:

    real, finite       a number; a number that is not NaN or infinite
    int, int>=-1       a whole number that is not negative; one that is at least −1
    int<n, int<=n      a whole number below a dimension; =n is the dimension itself
    flag, text, none   True or False; text; nothing
    real[n,d]          numbers of these dimensions, as finite[…] and flag[…]
    whole[n]<m         positions in m rows; without a bound whole numbers ≥ 0 (>=-1: ≥ −1); ^m: the largest is below m
    label[k]           values of any type, one each
    data[n,d]          a data set: an array, a sparse matrix, a table, a list of objects
    kernel             a kernel or a smoothing weight
    dtype, type        a type of numbers
    plain              text, numbers, or tuples, lists and sets of them
    Name(n,d)          a value of this class or a subclass, with these dimensions
    list(…)[n]         a list of values of a kind, as tuple(…)[n]; (…; …) is a tuple of these kinds
    {name: …; …}       a dictionary that may have these keys; dict(…) has texts as keys and values of a kind

A dimension is a name, a number, a sum such as d+1, max(f,2), or _ for any; "where" states a condition between them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

VALUES = """
[mercer.data.points]
Points(n, d) call
    raw: data[n,d]
    index: none | whole[n]<m
    among: none | =m
[mercer.kernels.algebra.parameters]
Fixed
    value: plain
[mercer.rkhs.tail]
Monomials
    degree: int
    shift scale: none | real[d]
Tail(p, t)
    basis: Monomials
    coef: real[p] | real[p,t]
[mercer.rkhs.expansion]
Pruning
    kept dropped: int
    change: real
Expansion(n, d, t) call
    kernel: kernel
    points: Points(n,d)
    coef: real[n] | real[n,t]
    tail: none | Tail(_,t)
    pruning: none | Pruning
[mercer.features.nonuniform]
Frequencies(d)
    centre spacing: finite[d]
    largest: tuple(int)[d]
[mercer.rkhs.trigonometric]
FourierFunction(t)
    kernel: kernel
    frequencies: Frequencies(_)
    coef: real[q] | real[q,t]
    tail: none | Tail(_,t)
    tol: real
    single: flag
[mercer.data.trees]
Tree
    labels arities: plain
[mercer.features.combine]
PowerMap
    phi: FeatureMap
    n: int
    index: text
ScaledMap
    phi: FeatureMap
    c: real
StackedMap
    maps: tuple(FeatureMap)
TensorMap
    maps: tuple(FeatureMap)
[mercer.features.elementary]
ConstantMap
    like: none | FeatureMap
FunctionMap
    phi: FeatureMap
    dimension: int
    d: none | int
IdentityMap
    d: int
LinearMap
    matrix: real[_,_] | data[_,_]
[mercer.features.fourier]
FourierMap
    kernel: kernel
    frequencies: real[_,_]
    orthogonal: flag
[mercer.features.images]
PatchMap
    anchors: real[_,_]
    shape: plain
    size stride: int
    sigma spread: real
[mercer.features.molecules]
Descriptors
    units: plain
Fingerprint
    radius bits: int
    counts: flag
[mercer.features.monomials]
MonomialMap
    d degree: int
    c: real
    index: text
[mercer.features.series]
SignatureMap
    d level: int
TimeMap
    scale: real
[mercer.features.subsets]
IncidenceMap
    universe: plain
SubsetMap
    universe: plain
    weight: real
[mercer.features.taylor]
TaylorMap
    sigma: real[_]
    d degree: int
    radius bound: real
[mercer.features.views]
ColumnsMap
    phi: FeatureMap
    columns: plain
    d: none | int
ComposedMap
    phi inner: FeatureMap
    d: none | int
[mercer.problems.families]
Bernoulli
Gamma
Gaussian
InverseGaussian
Poisson
NegativeBinomial
    theta: real
Tweedie
    power: real
[mercer.problems.links]
Cauchit
Cloglog
Identity
Inverse
Log
Logit
Probit
Sqrt
LogRatio
    theta: real
Power
    exponent: real
[mercer.problems.spaces]
FeatureSpace(n, m) call
    X: data[n,m]
    tail: real[n,p]
    mean: real[m]
[mercer.solvers.cholesky]
CholeskyFactor(n)
    alpha: real
    roots: none | real[n]
    tail: none
    shifted: real[n]
    L: real[n,n]
    border: none
[mercer.solvers.curvature]
FeatureSystem
    space: FeatureSpace(_,m)
    exact: flag
    patience: real
    scale: real[q]
    H: real[q,q]
    L?: real[q,q]
    vectors: none | real[q,_]
    where m <= q
[mercer.solvers.discriminant_axes]
Axes(d, k)
    directions: real[d,a]
    origin: real[d]
    means: real[k,a]
    ratios: real[a]
Whitened
    whitening: real[_,_]
    means half: real[_,_]
    ridge: real[_]
    rank: int
    shrinkage: real
    lost: flag
[mercer.solvers.perceptron]
Learnt(f)
    segments: tuple(Points(+s,_))
    rows: whole[s]
    codes: whole[s]<max(f,2)
    coef late: real[s,f]
    slots: whole[u]<s
    guesses: whole[u]<max(f,2)
    times: whole[u]
    seen mistakes: int
OnlinePerceptron(f)
    variant: text
    functions: =f
    learnt: Learnt(f)
    anchor: none | Points
PrimalPerceptron(f, d)
    variant: text
    intercept: flag
    functions: =f
    seen mistakes: int
    weights: real[2,f,d+1]
    updates: list(whole[_])
[mercer.solvers.perceptron_budget]
Basis(s, f, b)
    points: none | Points(s,_)
    rows: whole[s]
    W late: real[f,b]
    numbers: finite[4]
    where s <= b
Queue(s, f)
    points: none | Points(s,_)
    rows: whole[s]
    codes others: whole[s]<max(f,2)
    coef: real[f,s]
    sigma: real[s]
    numbers: finite[4]
Forgetron(f)
    functions: =f
    budget: int
    learnt: Queue(_,f)
    anchor: none | Points
Projectron(f)
    functions: =f
    eta: real
    averaged: flag
    L: real[b,b]
    _inverse: real[i,i]
    learnt: Basis(s,f,b)
    anchor: none | Points
[mercer.models.auto.response]
Response
LogScale < Response
    smear most: real
CountLevels < Response
    levels: real[r]
    weights: none | real[r]
    dispersion: ResidualScale(_)
Residuals < Response
    residuals: real[r]
    weights: none | real[r]
    scale: ResidualScale(_)
LogResiduals < LogScale
    residuals: Residuals
[mercer.models.residual_scale]
ResidualScale(k)
    at sizes: real[k]
[mercer.data.roles]
Role
    name dtype role why kind by kernel: text
    spread: real
    levels: plain
    periods: tuple(real)
    aligned: flag
    installable?: flag
    missing: int
[mercer.models.auto.columns]
Columns
    roles: tuple(Role)
    assigned: dict(text)
    numeric: flag
[mercer.models.auto.record]
Decision
    question taken why: text
    considered: none | Trials
    seconds: real
    advice?: text
Choices
    decisions: tuple(Decision)
[mercer.models.auto.stages]
LastFit
    rows total: int
    centres: none | int
    limit: text
[mercer.tuning.trials]
Measure
    by name: text
    greater: flag
Trial
    parameters: dict(plain | kernel)
    score standard_error: real
    rows folds: int
    name note: text
    seconds: real
Trials
    measure: Measure
    trials: tuple(Trial)[n]
    chosen: int<n
[mercer.models.scores]
Baseline
    mean median: real
    classes: tuple(plain)
    shares: tuple(real)
    low? high?: real
    rate?: none | real
Score
    name: text
    value low high baseline: real
[mercer.models.explaining.importance]
Importance
    names: tuple(text)
    rise spread: tuple(real)
    measure: text
    error: real
    rows repeats: int
[mercer.models.judging.drift]
Distribution
    edges shares: tuple(real)
    levels: tuple(text)
    rows: int
[mercer.models.judging.overlap]
Seen(n)
    digests: whole[n]
    limit rows: int
[mercer.models.provenance]
Split
    folds repeats: int
    group time: text
Provenance
    data: text
    target: none | text
    task: text
    target_type?: text
    columns left_out: dict(text)
    rows held_out: int
    refitted: flag
    seed: none | int
    judged: none | text
    split?: Split
    scores: tuple(Score)
    baseline: none | Baseline
    importance?: none | Importance
    places: tuple(int)
    targets?: tuple(plain)
    missing: tuple(text)
    ranges: dict(list(plain))
    incomplete?: none | tuple(text)
    distributions?: dict(Distribution)
    seen?: none | Seen(_)
    background?: none | data[_,_]
    version time: text
[mercer.models.base]
Rows(n, d, t)
    points: Points(n,d)
    y: real[n,t]
    single: flag
    roots: none | real[n]
    kept: whole[n]
    left_out: none | Points
[mercer.models.least_squares.bayesian]
Belief(m, t)
    mean: real[m,t]
    root: real[m] | real[m,_]
    flat: real[m,_]
[mercer.models.density.conditional_widths]
Choice
    kernel target_kernel: kernel
    x: none | Widths
    t: Widths
    status: text
    covariance slope: none | real[_,_]
    origin: real | real[_] | real[_,_]
[mercer.models.svm.margins]
Sides(p, s)
    between: tuple((text; text))[p]
    rows: whole[p]
    errors: whole[p]>=-1
    intercept: real[p]
    ends: whole[p+1]<=q
    support: whole[q]^s
    beta bound values: real[q]
    range: real
[mercer.models.density.parzen_columns]
MixedTable(w, d, q)
    width: =w
    numbers: tuple(int<w)[d]
    categories: tuple(int<w)[q]
    ordered: tuple(flag)[q]
    levels: tuple(label[_])[q]
[mercer.models.density.parzen_widths]
Widths
    shown: real[d] | real[d,d]
    root: none | real[d,d]
    notes: tuple(text)
[mercer.models.svm.probabilities]
Sigmoid
    a b: real
Softmax(k)
    scale: real
    offsets: real[k]
[mercer.models.recalibration]
Recalibration(k)
    mixing: real
    softmax: Softmax(k)
[mercer.models.least_squares.local_fits]
LocalFits call
    kernel: kernel
    X: real[n,_]
    y: real[n,_]
    ridge: real[n]
    k: int<=n
    degree: int>=-1
[mercer.models.least_squares.design]
Design
    kernel: kernel
    phi: none | FeatureMap
    implicit: flag
"""
"""Small classes that a fitted model may hold, by where they live."""

MODELS = """
Remembered
    provenance_?: Provenance
    table_?: {target: none | text; task: text; columns: dict(text); left_out: dict(text); rows: int; refitted: flag;
        scores: list({name: text; value: real; interval: none | list(real); baseline: none | real; guess: real});
        judged: text; misses: none | {kind: text; rows: int; values: list(real)}; data: text; places: list(int);
        na: list(text); seen: dict(list(plain));
        baseline: {mean: real; median: real; classes: tuple(plain); shares: tuple(real)}}
KernelEstimator < Remembered
    n_features_in_?: =d
    feature_names_in_?: label[d]
    kernel_?: kernel
    _fitted_on?: {rows: int; kind: text; dtypes: none | list(text)}
    status_?: text
RBFInterpolator
    y: real[n,c]
    d: real[n,_]
    d_shape: tuple(int)
    d_dtype: type
    smoothing: real[n]
    _function: kernel
    kernel: text
    epsilon: real
    _degree: int>=-1
    _definite: flag
    powers: whole[_,c]
    neighbors: none | int<=n
    condition: none | real
    _f?: Expansion(n,c,_)
    _local?: LocalFits
Ridge < KernelEstimator
    _design: Design
    features_: none | FeatureMap
    _single: flag
    _keeps_rows?: flag
    _cache: {}
    _penalties: real[_]
    form_: text
    alpha_: real | real[t]
    _intercept: real[t]
    _weights: none | real[_,t]
    intercept_: real | real[t]
    _rows?: Rows(n,_,t)
    _dual?: none | real[n,t]
BayesianLinearRegression < KernelEstimator
    _design: Design
    features_ _map: none | FeatureMap
    _single: flag
    _prior _belief: Belief(m,t)
    _rows_fitted?: none
    prior_scale_ prior_precision_ noise_precision_ log_evidence_: real
    n_iter_: int
    _cache: {}
    _row_sum: real[m]
    coef_: real[_] | real[_,t]
    intercept_: real | real[t]
KernelRidge < KernelEstimator
    _rows?: Rows(_,_,t)
    _keeps_rows?: flag
    _intercept: flag
    _cache: {}
    _penalties: real[_]
    alpha_: real | real[t]
    solver_: text
    residual_: real
    rank_: none | int
    intercept_: real | real[t]
    _centres?: Points(c,_)
    function_: Expansion(c,_,t) | FourierFunction(t)
    dual_coef_?: real[c] | real[c,t]
GaussianProcessRegressor < KernelEstimator
    _rows: Rows(n,_,t)
    _cache: {factor: CholeskyFactor(n)}
    alpha_ jitter_ log_evidence_: real
    _grew: flag
    function_: Expansion(n,_,t)
    dual_coef_: real[n] | real[n,t]
RBFNetwork < KernelEstimator
    _cache: {}
    _of_rows: dtype
    _penalty: text
    _degree: int>=-1
    _dual: flag
    _tail_basis: none | Monomials
    _centers?: Points(c,_)
    _penalties: real[_]
    alpha_: real | real[t]
    condition_: none | real
    rank_: none | int
    centers_: data[c,_]
    coef_: none | real[_] | real[_,t]
    tail_: none | Tail(_,t)
    function_?: Expansion(_,_,t)
    _rows?: Rows(n,_,t)
    _which?: whole[_]
    _merged?: flag
    _whiten?: none
    _local?: list((whole[_]<t; LocalFits))
LeastSquaresClassifier < KernelEstimator
    classes_: label[k]
    regression_: Saved
    alpha_: real | real[_]
Predictor < KernelEstimator
    n_iter_: int
    end_?: text
    objective_: real
FeaturePredictor < Predictor
    _design: Design
    features_: none | FeatureMap
    _wide: flag
    _unseen: real[_,_]
    _weights: real[_,t]
    _constants: real[t]
KernelPredictor < Predictor
    _centres: none | Points
    _why: text
    function_: Expansion(c,_,t)
    dual_coef_: real[c] | real[c,t]
    intercept_: real | real[t]
LogisticRegression < FeaturePredictor
    classes_: label[k]
    where t <= k
KernelLogisticRegression < KernelPredictor
    classes_: label[k]
GeneralisedLinearModel
    family_: Family
    link_: Link
    _shifts: none | real[_]
    _cache: {dispersion: real; left: real}
    _curvature?: FeatureSystem
    _y?: real[a]
    _kept?: whole[n]<a
    _rest?: none | Points
    _points?: Points(n,_)
    _packed?: (real[n]; none | real[n]; none | real[n]; real; real[_,_]; real[_,_])
    _fisher?: real[n]
GLM < FeaturePredictor GeneralisedLinearModel
KernelGLM < KernelPredictor GeneralisedLinearModel
SupportVectorMachine < KernelEstimator
    _go_on?: flag
    end_?: text
    _deadline?: none
    support_: whole[s]
    _support: Points(s,_)
    intercept_: real | real[p]
    duality_gap_ objective_: real[_]
    n_iter_: int
    gap_: real
SupportVectorRegressor < SupportVectorMachine
    dual_coef_: real[s] | real[s,p]
    function_: Expansion(s,_,p)
    bounded_: flag[s]
SupportVectorClassifier < SupportVectorMachine
    classes_: label[k]
    dual_coef_: real[s] | real[s,_]
    _function: none | Expansion(s,_,_)
    n_support_: whole[k]
    _sides: Sides(p,u)
    _codes?: whole[s]<k
    _sigmoids?: list(Sigmoid)[p]
    _ends?: whole[k+1]<=s
    where u <= s
SVC < SupportVectorClassifier
NuSVC < SupportVectorClassifier
    C_: real[_]
SVR < SupportVectorRegressor
NuSVR < SupportVectorRegressor
    epsilon_: real | real[_]
KernelQuantileRegressor < SupportVectorRegressor
    quantiles_: real[_]
    _several: flag
    crossing_: real
OneClassSVM < SupportVectorRegressor
    offset_: real
KernelPerceptron < OnlineClassifier
    _learner: OnlinePerceptron(f) | Projectron(f) | Forgetron(f)
    where k = max(f,2)
Perceptron < OnlineClassifier
    _learner: PrimalPerceptron(f,d)
    where k = max(f,2)
OnlineClassifier < KernelEstimator
    classes_: label[k]
    _seen n_iter_ t_ mistakes_: int
    mistakes_per_pass_: list(int)
Discriminant < KernelEstimator
    classes_: label[k]
    priors_?: real[k]
    _axes: Axes(_,k)
    centres_: real[_,_]
    ratios_: real[_]
    _slopes: real[_,_]
    _offsets: real[_]
FisherDiscriminant < Discriminant
    means_: real[_,_]
    _whitened: Whitened
    shrinkage_: real
    rank_: int
LinearDiscriminant < Discriminant
    means_: real[_,_]
    _whitened: Whitened
    shrinkage_: real
    rank_: int
HilbertDiscriminant < Discriminant
    alpha_: real
    solver_: text
    tuning_?: none
    function_: Expansion
KernelDiscriminant < HilbertDiscriminant
KernelFisherDiscriminant < HilbertDiscriminant
    _rarer?: real | real[k]
KernelPCA < KernelEstimator
    _values: real[_,_]
    _offsets _mean_values: real[_]
    _mean_square residual_: real
    _all function_ mean_: Expansion
    dual_coef_: real[_,_]
    eigenvalues_ explained_variance_ explained_variance_ratio_: real[_]
    n_components_ _n_features_out: int
    solver_: text
    _regression?: KernelRidge
LocalEstimator < KernelEstimator
    _rows: Rows(n,_,_)
    _keeps_rows?: flag
    loo_loss_: none | real
    bandwidth_: none | real | real[_] | real[_,_]
NadarayaWatsonRegressor < LocalEstimator
    _cache: {}
NadarayaWatsonClassifier < LocalEstimator
    classes_: label[k]
LocalRegression < LocalEstimator
    _cache: {}
    _degree: int
    _near: none | real
    _trust: none | real[n]
ParzenDensity < KernelEstimator
    _table: MixedTable(w,c,q)
    _like: none | data[_,_]
    _w: real[n]
    category_bandwidth_: real[q]
    _widths: Widths
    bandwidth_: real[c] | real[c,c]
    _constant: real
    _numbers: real[n,c]
    _codes: whole[n,q]
    categories_: list(label[_])[q]
    _centre: real[c]
    _points: none | Points(n,_)
    factors_: none | real[n]
    _distribution: none
ConditionalDensity < KernelEstimator
    _objects: flag
    _numbers: none | real[n,_]
    _choice: Choice
    target_kernel_: kernel
    bandwidth_: none | real[_] | real[_,_]
    target_bandwidth_: real[_] | real[_,_]
    covariance_ slope_: none | real[_,_]
    _rows: Rows(n,_,t)
    _w: real[n]
    _points: Points(n,_)
    _residuals: real[n,t]
    _centre _spread _kernel_std: real[t]
KernelNeighbors < KernelEstimator
    _left_out: none | Points
    _points: Points(n,_)
    _weights: none | real[n]
    _kept: whole[n]
    _common_diagonal: none | real
    n_neighbors_: int<=n
    loo_errors_?: real[_] | real[_,_]
KernelNeighborsRegressor < KernelNeighbors
    _single: flag
    _y: real[n,_]
KernelNeighborsClassifier < KernelNeighbors
    classes_: label[k]
    _codes: whole[n]<k
ConformalRegressor < Remembered
    n_features_in_?: int
    feature_names_in_?: label[_]
    _single: flag
    _train: none | whole[_]
    model_: Saved | KernelEstimator
    models_: list(Saved)[m]
    fits_: int
    _residuals: real[n,_]
    residuals_: real[n] | real[n,_]
    _scales?: list(ResidualScale(_))[t]
    _least?: real[t]
    n_calibration_: =n
    _fold?: whole[n]<n
    _rows?: list(whole[_])[m]
BoundedRegressor < Remembered
    n_features_in_?: int
    feature_names_in_?: label[_]
    _fitted_on: {rows: int; kind: text; dtypes: none | list(text)}
    model_: Saved | KernelEstimator
    least_: real
CalibratedClassifier < Remembered
    n_features_in_?: int
    feature_names_in_?: label[_]
    _fitted_on?: {rows: int; kind: text; dtypes: none | list(text)}
    model_: Saved | KernelEstimator
    classes_: label[k]
    recalibration_: Recalibration(k)
    threshold_: none | real
    _factors: real[k]
AutoModel < KernelEstimator
    loss_: text
    model_: Saved
    choices_: Choices
    stopped_by_?: none | text
    columns_?: Columns
    last_fit_?: none | LastFit
AutoRegressor < AutoModel
    response_: Response
    loo_error_: real
    _exposure?: none | real[_]
    _least? loo_optimism_?: real
AutoClassifier < AutoModel
    classes_: label[k]
    softmax_: none | Softmax(k)
    _factors?: none | real[k]
"""
"""Estimators, and what several of them share."""


class Kind(NamedTuple):
    """One kind of value.

    Attributes
    ----------
    name : str
        The word it begins with.
    dims : tuple of str or None
        The dimensions in brackets, or None.
    bound : tuple or None
        The bound of a whole number: an operator and a dimension.
    parts : tuple
        The kinds of what is inside, each a choice of several.
    keys : tuple of str
        Of a dictionary.
    """

    name: str
    dims: tuple[str, ...] | None = None
    bound: tuple[str, str] | None = None
    parts: tuple[tuple[Kind, ...], ...] = ()
    keys: tuple[str, ...] = ()


Choice = tuple[Kind, ...]


class Declared(NamedTuple):
    """The declaration of one class.

    Attributes
    ----------
    module : str
        The module of the class; empty for estimators, which are public.
    dims : tuple of str
        The dimensions that others may refer to, in this order.
    call : bool
        Whether it is built by calling it with its attributes in their order.
    kinds : dict
        The kinds of its attributes, one or several alternatives each.
    optional : frozenset
        Attributes that not every value has.
    where : tuple
        Conditions between dimensions: left, operator, right.
    """

    module: str
    dims: tuple[str, ...]
    call: bool
    kinds: dict[str, Choice]
    optional: frozenset[str]
    where: tuple[tuple[str, str, str], ...]


_TOKEN = re.compile(r"\s*(max\(\w+,\d+\)|\+?\w+(?:\+\d+)?|-\d+|<=|>=|[<=^|;:,(){}\[\]])")


class _Parser:
    """Recursive descent over the text of a kind."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise SyntaxError(text)
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str | None = None) -> str:
        taken = self.next
        if not taken or (token is not None and taken != token):
            raise SyntaxError(" ".join(self.tokens))
        self.at += 1
        return taken

    def choice(self) -> Choice:
        kinds = [self.kind()]
        while self.next == "|":
            self.take()
            kinds.append(self.kind())
        return tuple(kinds)

    def kind(self) -> Kind:
        match self.next:
            case "=":
                return Kind("int", bound=(self.take(), self.take()))
            case "(":
                return Kind("(", parts=tuple(self.several(self.choice, "(", ")", ";")))
            case "{":
                pairs = self.several(self.pair, "{", "}", ";")
                return Kind("{", parts=tuple(part for _, part in pairs), keys=tuple(key for key, _ in pairs))
        name, parts, dims = self.take(), (), None
        if name in ("list", "tuple", "dict"):
            parts = tuple(self.several(self.choice, "(", ")", ";"))
        elif self.next == "(":
            dims = tuple(self.several(self.take, "(", ")", ","))
        if self.next == "[":
            dims = tuple(self.several(self.take, "[", "]", ","))
        bound = (self.take(), self.take()) if self.next in ("<", "<=", ">=", "^") else None
        return Kind(name, dims, bound, parts)

    def pair(self) -> tuple[str, Choice]:
        key = self.take()
        self.take(":")
        return key, self.choice()

    def several(self, one: Any, begin: str, end: str, between: str) -> list[Any]:
        self.take(begin)
        items: list[Any] = []
        while self.next != end:
            if items:
                self.take(between)
            items.append(one())
        self.take(end)
        return items


@cache
def declarations() -> dict[str, Declared]:
    """The declaration of every class by its name, with the declarations that it includes."""
    resolved: dict[str, Declared] = {}
    waiting: dict[str, tuple[str, list[str], list[str], bool, list[str]]] = {}
    module = ""
    for line in [*VALUES.strip().splitlines(), "[]", *MODELS.strip().splitlines()]:
        if line.startswith("["):
            module = line.strip("[]")
        elif not line.startswith(" "):
            head, _, bases = line.partition(" < ")
            name, dims, call = re.fullmatch(r"(\w+)(?:\(([\w, ]+)\))?( call)?", head).groups()  # type: ignore[union-attr]
            lines: list[str] = []
            waiting[name] = module, bases.split(), re.findall(r"\w+", dims or ""), bool(call), lines
        elif line.startswith(8 * " "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line.strip())

    def resolve(name: str) -> Declared:
        if name not in resolved:
            module, bases, dims, call, lines = waiting[name]
            kinds: dict[str, Choice] = {}
            optional: set[str] = set()
            where: list[tuple[str, str, str]] = []
            for base in map(resolve, bases):
                kinds |= base.kinds
                optional |= base.optional
                where += base.where
            for line in lines:
                if line.startswith("where "):
                    left, relation, right = line.removeprefix("where ").split()
                    where.append((left, relation, right))
                    continue
                names, _, text = line.partition(":")
                parser = _Parser(text)
                choice = parser.choice()
                if parser.next:
                    raise SyntaxError(line)
                for attribute in names.split():
                    kinds[attribute.rstrip("?")] = choice
                    if attribute.endswith("?") or names.endswith("?"):
                        optional.add(attribute.rstrip("?"))
            resolved[name] = Declared(module, tuple(dims), call, kinds, frozenset(optional), tuple(where))
        return resolved[name]

    for name in waiting:
        resolve(name)
    return resolved


@cache
def small() -> dict[str, tuple[str, tuple[str, ...] | None]]:
    """The module of every small class by its name in files, and the arguments it is called with if it is "call"."""
    return {
        f"{declared.module.rpartition('.')[2]}.{name}": (
            declared.module,
            tuple(declared.kinds) if declared.call else None,
        )
        for name, declared in declarations().items()
        if declared.module
    }
