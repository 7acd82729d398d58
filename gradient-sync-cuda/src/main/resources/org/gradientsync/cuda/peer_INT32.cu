// Made for one type each, so that a program's start waits for the compiling of those that it uses alone.

#include "peer.cuh"

REDUCTIONS(INT32, Plain<int>, false)
BROADCAST(INT32, Plain<int>)
