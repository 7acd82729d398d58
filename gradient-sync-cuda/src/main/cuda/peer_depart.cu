// Notifies the other ranks' kernels that this rank departs. Enqueued behind all of its calls.

#include "protocol.cuh"

extern "C" __global__ void depart(const __grid_constant__ Arguments a) {
  Mailbox* own = a.mailboxes[a.rank];
  if (look(&own->broken) == 0 && threadIdx.x < a.ranks && threadIdx.x != a.rank) {
    unsigned long long next = look(&own->call) + 1;
    tell(&a.mailboxes[threadIdx.x]->headers[next & 1][a.rank], next << TAG_BITS | GAVE_UP);
  }
}
