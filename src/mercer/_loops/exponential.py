"""exp for vectors, as straight-line code.

    exp(x) = 2^k e^r,    k = round(x / ln 2),    r = x - k ln 2,    |r| <= ln(2)/2,    e^r = 1 + r q(r),

where q interpolates (e^r - 1)/r in Chebyshev points: relative error 5e-9 in float32 (degree 6 in all) and 9e-18 in
float64 (degree 11), and exp(0) = 1 exactly. With the rounding of the operations that is less than one unit in the last
place.

Adding 1.5 * 2^23 (2^52) rounds to an integer and leaves k in the low bits of the sum, from where a shift takes it to
the exponent: no conversion, hence no instruction that older processors lack. No fast-math flag is used: `reassoc` would
cancel that addition and give wrong values without an error.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from llvmlite import ir

from .vectors import Lanes, call, constant, intrinsic, suffix

_EXP = {
    32: (1.00000001077804, 0.500000001346581, 0.1666650519575811, 0.041666464925285904,
         0.008369155667697397, 0.0013933649996309251),
    64: (1.0, 0.5000000000000006, 0.1666666666666667, 0.041666666666573066, 0.008333333333326136,
         0.001388888893251478, 0.00019841269874820627, 2.480150431378554e-05, 2.7557255400206422e-06,
         2.7626371065696354e-07, 2.5105217004720745e-08),
}  # fmt: skip
_EXP2 = {
    32: (0.6931471880307134, 0.24022650760606956, 0.0555035709268903, 0.009618082538636961,
         0.0013390874847810528, 0.00015453172887040158),
    64: (0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606871,
         0.0013333558146416927, 0.00015403530441765088, 1.5252733829851596e-05, 1.321544257022465e-06,
         1.0178062436412765e-07, 7.072589488396345e-09, 4.4549624846332125e-10),
}  # fmt: skip
_MAGIC = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
# ln 2 in two parts, the first so short that k times it is exact.
_LN2 = {32: (0.693145751953125, 1.428606765330187e-06), 64: (0.6931471803691238, 1.9082149292705877e-10)}
_LOG2E = 1.4426950408889634
# exp is 0 below the first and inf above the second: the last numbers whose exp is normal and finite.
_RANGE = {32: (-87.33654022216797, 88.72283172607422), 64: (-708.3964185322641, 709.782712893384)}


def _polynomial(builder, lanes: Lanes, r, coefficients):
    """1 + r q(r)."""
    p = constant(lanes, coefficients[-1])
    for c in reversed((1.0, *coefficients[:-1])):
        p = call(builder, f"llvm.fmuladd.{suffix(lanes)}", r.type, p, r, constant(lanes, c))
    return p


def _exponent(builder, lanes: Lanes, t):
    """The low bits of t, as integers, where the exponent of a number is."""
    bits = lanes.dtype.bitwidth
    integers = ir.VectorType(ir.IntType(bits), lanes.count)
    places = ir.Constant(integers, [ir.Constant(integers.element, _MANTISSA[bits])] * lanes.count)
    return builder.shl(builder.bitcast(t, integers), places)


@intrinsic
def exp(typingctx, x):
    """exp of every lane: 0 below the smallest normal number, inf above the largest, NaN for NaN."""

    def generate(context, builder, sig, args):
        (value,), bits = args, x.dtype.bitwidth
        fmuladd, vector = f"llvm.fmuladd.{suffix(x)}", args[0].type
        log2e, magic = constant(x, _LOG2E), constant(x, _MAGIC[bits])
        high, low = (constant(x, -part) for part in _LN2[bits])
        t = call(builder, fmuladd, vector, value, log2e, magic)
        k = builder.fsub(t, magic)
        r = call(builder, fmuladd, vector, k, low, call(builder, fmuladd, vector, k, high, value))
        exponent = _exponent(builder, x, t)
        # adding integers reaches 2^1024 (1 - eps), which the factor 2^k would not
        p = builder.bitcast(_polynomial(builder, x, r, _EXP[bits]), exponent.type)
        result = builder.bitcast(builder.add(p, exponent), vector)
        smallest, largest = (constant(x, bound) for bound in _RANGE[bits])
        # a NaN may carry bits that the addition would turn into a number: it counts as too large, and stays NaN
        over = builder.fmul(value, constant(x, float("inf")))
        result = builder.select(builder.fcmp_unordered(">", value, largest), over, result)
        return builder.select(builder.fcmp_ordered("<", value, smallest), constant(x, 0.0), result)

    return x(x), generate


@intrinsic
def exp4_negative(typingctx, x):
    """min(4^x, 1) of every lane: 0 below the smallest normal number, NaN for NaN."""

    def generate(context, builder, sig, args):
        bits = x.dtype.bitwidth
        # the bias of the exponent goes into the magic number, so that the shift gives 2^k itself
        zero, two, magic = (constant(x, v) for v in (0.0, 2.0, _MAGIC[bits] + _BIAS[bits]))
        fmuladd, vector = f"llvm.fmuladd.{suffix(x)}", args[0].type
        value = builder.select(builder.fcmp_ordered(">", args[0], zero), zero, args[0])
        t = call(builder, fmuladd, vector, value, two, magic)
        r = call(builder, fmuladd, vector, value, two, builder.fsub(magic, t))
        scale = builder.bitcast(_exponent(builder, x, t), vector)
        result = builder.fmul(_polynomial(builder, x, r, _EXP2[bits]), scale)
        smallest = constant(x, 0.5 * (1 - _BIAS[bits]))
        return builder.select(builder.fcmp_ordered("<", value, smallest), zero, result)

    return x(x), generate
