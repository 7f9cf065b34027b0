"""Turns plain equations of scalars into straight-line code for kernels.

A function written with `+ - * /`, comparisons and `airworthy.core.ops` is called once with `Value`s; what it does to them is
recorded as a graph in which equal terms are one node, and printed as C that compiles for lane vectors and for single
numbers alike. Called with `Dual`s of `Value`s it yields the code of exact derivatives; `adjoint` yields them backwards.
"""

from airworthy.core.tracing.dual import Dual, jacobian
from airworthy.core.tracing.graph import Graph, Mask, TracedBlock, Value, trace
from airworthy.core.tracing.reverse import adjoint, evaluate, needed_inputs, vector_jacobian

__all__ = [
    "Dual",
    "Graph",
    "Mask",
    "TracedBlock",
    "Value",
    "adjoint",
    "evaluate",
    "jacobian",
    "needed_inputs",
    "trace",
    "vector_jacobian",
]
