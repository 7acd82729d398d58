// Tells the other ranks' kernels that this rank's host waits for them in a call that has no kernel: they wait for each
// other in different calls. Enqueued behind all of this rank's calls, so the next call's number is known.

#include "peer.cuh"

extern "C" __global__ void notice(const __grid_constant__ Arguments a) {
  Mailbox* own = a.mailboxes[a.rank];
  if (look(&own->broken) == 0 && threadIdx.x < a.ranks && threadIdx.x != a.rank) {
    unsigned long long next = look(&own->call) + 1;
    tell(&a.mailboxes[threadIdx.x]->headers[next & 1][a.rank], next << TAG_BITS | ELSEWHERE);
  }
}
