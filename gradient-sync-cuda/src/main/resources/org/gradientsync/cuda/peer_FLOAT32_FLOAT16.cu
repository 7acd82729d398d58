// Made for one type each, so that a program's start waits for the compiling of those that it uses alone.

#include "peer.cuh"

NARROWED(FLOAT32_FLOAT16, Half, false)
