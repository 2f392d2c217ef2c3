"""Explicit vectors for Numba: a few registers of numbers as one value.

LLVM vectorises plain loops with 256 bits at most, even where the processor has 512, and gives up on loops with a
polynomial exp after a matrix product. Here a loop says what it wants: `load` gives a value of type `Lanes` (a fixed
number of float32, float64 or int64), `+ - *` and `fma` work lane by lane, `store` writes it back. LLVM splits a wide
vector into as many registers as the processor needs, so the same code runs on every processor that Numba supports.

Memory is addressed by integers (the address of the first element, strides in bytes): no difference between writeable
and read-only arrays, or between contiguous arrays and row-strided views, ever reaches Numba, and each loop is
compiled once per dtype. `like` is a scalar whose type is the dtype wanted.

Numba's disk cache watches the file of the compiled function only: after an edit here, touch the files that use it.
"""

from __future__ import annotations

import operator

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
BYTES = 256 if WIDE else 64
"""Size of one Lanes value: four rows of it are the accumulators of a register tile (16 of 32 or 8 of 16 registers)."""

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


class Lanes(types.Type):
    """The Numba type of `count` numbers of `dtype` that are worked on at once."""

    def __init__(self, dtype: types.Type, count: int = 0) -> None:
        self.dtype, self.count = dtype, count or BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype} x {self.count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(_scalar(lanes.dtype), lanes.count))


def _scalar(dtype: types.Type) -> ir.Type:
    return {types.float32: ir.FloatType(), types.float64: ir.DoubleType(), types.int64: I64}[dtype]


def _suffix(lanes: Lanes) -> str:
    """The name LLVM gives to a vector type inside an intrinsic's name: v64f32."""
    letter = "f" if isinstance(lanes.dtype, types.Float) else "i"
    return f"v{lanes.count}{letter}{lanes.dtype.bitwidth}"


def _call(builder, name: str, result: ir.Type, *arguments):
    """Call the LLVM intrinsic `name`."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments)


def _constant(lanes: Lanes, value) -> ir.Constant:
    vector = ir.VectorType(_scalar(lanes.dtype), lanes.count)
    return ir.Constant(vector, [ir.Constant(vector.element, value)] * lanes.count)


def _splat(builder, lanes: Lanes, scalar):
    vector = ir.VectorType(scalar.type, lanes.count)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes.count), [0] * lanes.count))


def _between(builder, lanes: Lanes, low, high):
    """The mask low <= lane < high."""
    vector = ir.VectorType(I64, lanes.count)
    lane = ir.Constant(vector, list(range(lanes.count)))
    above = builder.icmp_signed(">=", lane, _splat(builder, lanes, low))
    return builder.and_(above, builder.icmp_signed("<", lane, _splat(builder, lanes, high)))


def _pointer(builder, address, index, element: ir.Type, target: ir.Type):
    pointer = builder.gep(builder.inttoptr(address, element.as_pointer()), [index])
    return builder.bitcast(pointer, target.as_pointer())


@intrinsic
def count(typingctx, like):
    """How many numbers of `like`'s dtype one Lanes value holds."""

    def generate(context, builder, sig, args):
        return I64(Lanes(like).count)

    return types.int64(like), generate


@intrinsic
def get(typingctx, like, address, index):
    """The scalar at `address`, `index` elements on."""

    def generate(context, builder, sig, args):
        element = _scalar(like)
        return builder.load(_pointer(builder, args[1], args[2], element, element))

    return like(like, types.int64, types.int64), generate


@intrinsic
def put(typingctx, address, index, value):
    """Write the scalar `value` to `address`, `index` elements on."""

    def generate(context, builder, sig, args):
        element = _scalar(value)
        builder.store(args[2], _pointer(builder, args[0], args[1], element, element))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, value), generate


@intrinsic
def put_as(typingctx, like, address, index, value):
    """Write the float64 `value` to `address`, `index` elements on, as a number of `like`'s dtype."""

    def generate(context, builder, sig, args):
        element = _scalar(like)
        number = args[3] if element == args[3].type else builder.fptrunc(args[3], element)
        builder.store(number, _pointer(builder, args[1], args[2], element, element))
        return context.get_dummy_value()

    return types.void(like, types.int64, types.int64, types.float64), generate


@intrinsic
def splat(typingctx, value):
    """All lanes equal to the scalar `value`."""
    lanes = Lanes(value)

    def generate(context, builder, sig, args):
        return _splat(builder, lanes, args[0])

    return lanes(value), generate


@intrinsic
def fill(typingctx, like, value):
    """All lanes equal to the number `value`, in `like`'s dtype."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        return _splat(builder, lanes, context.cast(builder, args[1], value, like))

    return lanes(like, value), generate


@intrinsic
def load(typingctx, like, address, index):
    """The numbers `address`[index : index + count]."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        vector = ir.VectorType(_scalar(like), lanes.count)
        return builder.load(_pointer(builder, args[1], args[2], vector.element, vector), align=like.bitwidth // 8)

    return lanes(like, types.int64, types.int64), generate


@intrinsic
def store(typingctx, address, index, x):
    """`address`[index : index + count] = x."""

    def generate(context, builder, sig, args):
        vector = args[2].type
        pointer = _pointer(builder, args[0], args[1], vector.element, vector)
        builder.store(args[2], pointer, align=x.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, x), generate


@intrinsic
def load_some(typingctx, like, address, index, low, high):
    """As `load`, but only lanes low <= lane < high are read; the others are 0."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        _, address, index, low, high = args
        vector = ir.VectorType(_scalar(like), lanes.count)
        pointer = _pointer(builder, address, index, vector.element, vector)
        return _call(
            builder, f"llvm.masked.load.{_suffix(lanes)}.p0", vector,
            pointer, I32(like.bitwidth // 8), _between(builder, lanes, low, high), _constant(lanes, 0),
        )  # fmt: skip

    return lanes(like, types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def store_some(typingctx, address, index, x, low, high):
    """As `store`, but only lanes low <= lane < high are written."""

    def generate(context, builder, sig, args):
        address, index, value, low, high = args
        pointer = _pointer(builder, address, index, value.type.element, value.type)
        _call(
            builder, f"llvm.masked.store.{_suffix(x)}.p0", ir.VoidType(),
            value, pointer, I32(x.dtype.bitwidth // 8), _between(builder, x, low, high),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, x, types.int64, types.int64), generate


@intrinsic
def fma(typingctx, x, y, z):
    """x y + z, rounded once where the processor can."""

    def generate(context, builder, sig, args):
        return _call(builder, f"llvm.fmuladd.{_suffix(x)}", args[0].type, *args)

    return x(x, x, x), generate


@intrinsic
def sqrt(typingctx, x):
    """The square root of every lane."""

    def generate(context, builder, sig, args):
        return _call(builder, f"llvm.sqrt.{_suffix(x)}", args[0].type, *args)

    return x(x), generate


@intrinsic
def absolute(typingctx, x):
    """The absolute value of every lane."""

    def generate(context, builder, sig, args):
        return _call(builder, f"llvm.fabs.{_suffix(x)}", args[0].type, *args)

    return x(x), generate


@intrinsic
def where_less(typingctx, x, y, then, other):
    """`then` in the lanes with x < y, `other` elsewhere (so where x or y is NaN)."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return then(x, x, then, then), generate


@intrinsic
def equal(typingctx, x, y):
    """1 in the lanes with x = y, 0 elsewhere, for integers."""

    def generate(context, builder, sig, args):
        return builder.zext(builder.icmp_signed("==", *args), args[0].type)

    return x(x, x), generate


@intrinsic
def store_as(typingctx, like, address, index, x, low, high):
    """As `store_some`, integers becoming numbers of `like`'s dtype."""

    def generate(context, builder, sig, args):
        _, address, index, value, low, high = args
        lanes = Lanes(like, x.count)
        vector = ir.VectorType(_scalar(like), x.count)
        pointer = _pointer(builder, address, index, vector.element, vector)
        _call(
            builder, f"llvm.masked.store.{_suffix(lanes)}.p0", ir.VoidType(),
            builder.sitofp(value, vector), pointer, I32(like.bitwidth // 8), _between(builder, lanes, low, high),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(like, types.int64, types.int64, x, types.int64, types.int64), generate


@intrinsic
def least(typingctx, x):
    """The smallest lane, as a scalar."""

    def generate(context, builder, sig, args):
        return _call(builder, f"llvm.vector.reduce.fmin.{_suffix(x)}", args[0].type.element, args[0])

    return x.dtype(x), generate


@intrinsic
def total(typingctx, x):
    """The sum of the lanes in float64. Quarters are added first: four terms lose nothing that matters."""

    def generate(context, builder, sig, args):
        value, n = args[0], x.count
        for _ in range(2):
            n //= 2
            half = [ir.Constant(ir.VectorType(I32, n), list(range(k * n, k * n + n))) for k in (0, 1)]
            value = builder.fadd(*(builder.shuffle_vector(value, value, h) for h in half))
        if x.dtype == types.float32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), n))
        while n > 1:
            n //= 2
            half = [ir.Constant(ir.VectorType(I32, n), list(range(k * n, k * n + n))) for k in (0, 1)]
            value = builder.fadd(*(builder.shuffle_vector(value, value, h) for h in half))
        return builder.extract_element(value, I32(0))

    return types.float64(x), generate


SQUARE_BYTES = 64 if WIDE else 32
"""Side of the square that `transpose` keeps in registers, in bytes."""


@intrinsic
def side(typingctx, like):
    """Side of the square that `transpose` moves, in numbers of `like`'s dtype."""

    def generate(context, builder, sig, args):
        return I64(SQUARE_BYTES * 8 // like.bitwidth)

    return types.int64(like), generate


@intrinsic
def transpose(typingctx, like, source, stride, target, target_stride):
    """Write the transpose of the square of `side` rows at `source` to `target`; strides in bytes.

    Eklundh's scheme: for s = side/2, ..., 2, 1 rows i and i + s exchange the blocks of s columns off the diagonal.
    """

    def generate(context, builder, sig, args):
        _, source, stride, target, target_stride = args
        n = SQUARE_BYTES * 8 // like.bitwidth
        vector, align = ir.VectorType(_scalar(like), n), like.bitwidth // 8

        def row(start, step, i):
            return builder.inttoptr(builder.add(start, builder.mul(step, I64(i))), vector.as_pointer())

        rows = [builder.load(row(source, stride, i), align=align) for i in range(n)]
        s = n // 2
        while s:
            for i in (i for i in range(n) if not i & s):
                upper = [c if not c & s else n + c - s for c in range(n)]
                lower = [c + s if not c & s else n + c for c in range(n)]
                rows[i], rows[i + s] = (
                    builder.shuffle_vector(rows[i], rows[i + s], ir.Constant(ir.VectorType(I32, n), places))
                    for places in (upper, lower)
                )
            s //= 2
        for i, value in enumerate(rows):
            builder.store(value, row(target, target_stride, i), align=align)
        return context.get_dummy_value()

    return types.void(like, *[types.int64] * 4), generate


def _arithmetic(operation, instruction: str) -> None:
    """Give Lanes an operator: lanes with lanes, or lanes with a scalar of the same dtype."""

    @infer_global(operation)
    class Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[1] in (args[0], args[0].dtype):
                return signature(args[0], *args)

    @lower_builtin(operation, Lanes, types.Any)
    def generate(context, builder, sig, args):
        x, y = args
        name = instruction if isinstance(sig.args[0].dtype, types.Float) else instruction.lstrip("f")
        return getattr(builder, name)(x, y if sig.args[1] == sig.args[0] else _splat(builder, sig.args[0], y))


_arithmetic(operator.add, "fadd")
_arithmetic(operator.iadd, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")


# exp(x) = 2^k e^r with k = round(x / ln 2) and r = x - k ln 2, |r| <= ln(2)/2; there e^r = 1 + r q(r).
# q interpolates (e^r - 1)/r in Chebyshev points: relative error 5e-9 (degree 6 in all) and 9e-18 (degree 11), and
# exp(0) = 1 exactly. Adding 1.5 * 2^23 (2^52) rounds to an integer and leaves k in the low bits of the sum, from where
# a shift takes it to the exponent: no conversion, hence no instruction that older processors lack. No fast-math flag
# is used: `reassoc` would cancel the addition.
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
_LN2 = {32: (0.693145751953125, 1.428606765330187e-06), 64: (0.6931471803691238, 1.9082149292705877e-10)}
_LOG2E = 1.4426950408889634
# exp is 0 below the first and inf above the second: the smallest normal number and the largest number.
_RANGE = {32: (-87.33654475, 88.72283935546875), 64: (-708.3964185322641, 709.782712893384)}
_SMALLEST_EXPONENT = {32: -126.0, 64: -1022.0}


def _power(builder, lanes: Lanes, t, r, coefficients):
    """(1 + r q(r)) 2^k, where k sits in the low bits of t."""
    bits = lanes.dtype.bitwidth
    fmuladd, vector = f"llvm.fmuladd.{_suffix(lanes)}", t.type
    q = _constant(lanes, coefficients[-1])
    for c in reversed((1.0, *coefficients[:-1])):
        q = _call(builder, fmuladd, vector, q, r, _constant(lanes, c))
    integers = ir.VectorType(ir.IntType(bits), lanes.count)
    places = ir.Constant(integers, [ir.Constant(integers.element, _MANTISSA[bits])] * lanes.count)
    exponent = builder.shl(builder.bitcast(t, integers), places)
    return builder.bitcast(builder.add(builder.bitcast(q, integers), exponent), vector)


@intrinsic
def exp(typingctx, x):
    """exp of every lane: 0 below the smallest normal number, inf above the largest, NaN for NaN."""

    def generate(context, builder, sig, args):
        (value,), bits = args, x.dtype.bitwidth
        constant = lambda v: _constant(x, v)  # noqa: E731
        fmuladd, vector = f"llvm.fmuladd.{_suffix(x)}", value.type
        t = _call(builder, fmuladd, vector, value, constant(_LOG2E), constant(_MAGIC[bits]))
        k = builder.fsub(t, constant(_MAGIC[bits]))
        high, low = _LN2[bits]
        r = _call(builder, fmuladd, vector, k, constant(-high), value)
        r = _call(builder, fmuladd, vector, k, constant(-low), r)
        result = _power(builder, x, t, r, _EXP[bits])
        smallest, largest = _RANGE[bits]
        under = builder.fcmp_ordered("<", value, constant(smallest))
        over = builder.fcmp_ordered(">", value, constant(largest))
        return builder.select(under, constant(0.0), builder.select(over, constant(float("inf")), result))

    return x(x), generate


@intrinsic
def exp4_negative(typingctx, x):
    """min(4^x, 1) of every lane: 0 below the smallest normal number, NaN for NaN."""

    def generate(context, builder, sig, args):
        bits = x.dtype.bitwidth
        zero, two, magic = (_constant(x, v) for v in (0.0, 2.0, _MAGIC[bits]))
        fmuladd, vector = f"llvm.fmuladd.{_suffix(x)}", args[0].type
        value = builder.select(builder.fcmp_ordered(">", args[0], zero), zero, args[0])
        t = _call(builder, fmuladd, vector, value, two, magic)
        r = _call(builder, fmuladd, vector, value, two, builder.fsub(magic, t))
        result = _power(builder, x, t, r, _EXP2[bits])
        smallest = _constant(x, 0.5 * _SMALLEST_EXPONENT[bits])
        return builder.select(builder.fcmp_ordered("<", value, smallest), zero, result)

    return x(x), generate
