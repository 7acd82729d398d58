// Made for one type and one family each, so that a program's start waits for the compiling of those that it uses alone.
// Needs compute_80, which converts two floats at once.

#include "peer.cuh"

NARROWED(FLOAT32_FLOAT16, Half, false)
