// Made for one type each, so that a program's start waits for the compiling of those that it uses alone.

#include "peer.cuh"

REDUCTIONS(FLOAT16, Half, false)
BROADCAST(FLOAT16, Half)
