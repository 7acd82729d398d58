// Made for one type and one family each, so that a program's start waits for the compiling of those that it uses alone.

#include "peer.cuh"

FAMILY(BFLOAT16, Brain, OTHER, false)
