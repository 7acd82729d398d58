// Made for one type each, so that a program's start waits for the compiling of those that it uses alone.

#include "peer.cuh"

REDUCTIONS(INT64, Plain<long long>, false)
BROADCAST(INT64, Plain<long long>)
