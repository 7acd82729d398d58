// Messages between two ranks, through a bounded part of the receiver's mailbox.
//
// Other ranks take no part, so messages do not count as calls. Each pair of ranks counts the chunks that have gone from one to
// the other, and never begins anew. Chunks are dealt to the blocks in turn, and a block deals with the same block of the other
// rank alone. The hosts have met, so both kernels come, with the same number of bytes.
//
// Of Arguments, buffers[rank] are the elements, `count` their bytes, `root` the other rank, and `stride` the vectors of a chunk.

#include "copy.cuh"

constexpr int MESSAGE_BLOCKS = 16;
constexpr int MESSAGE_SLOTS = 4; // chunks of each block that may be under way

// What a mailbox has for each other rank. PeerLayout.java knows its size.
struct Pair {
  unsigned long long sent[MESSAGE_BLOCKS];  // by the other rank's blocks: chunks that they have sent to this rank
  unsigned long long taken[MESSAGE_BLOCKS]; // by them, too: chunks that they have taken from this rank
  unsigned long long sends[MESSAGE_BLOCKS]; // by this rank's blocks, at the end of a message: chunks sent to the other rank
  unsigned long long takes[MESSAGE_BLOCKS]; // and taken from it
};

__device__ __forceinline__ Pair& pair(const Arguments& a, int mailbox, int other) {
  return reinterpret_cast<Pair*>(a.staging[mailbox])[other];
}

// The n-th chunk of this block.
__device__ __forceinline__ char* slot(const Arguments& a, int receiver, int sender, unsigned long long n) {
  uint4* slots = reinterpret_cast<uint4*>(reinterpret_cast<Pair*>(a.staging[receiver]) + MAX_RANKS);
  return reinterpret_cast<char*>(slots + ((sender * MESSAGE_BLOCKS + blockIdx.x) * MESSAGE_SLOTS + n % MESSAGE_SLOTS) * a.stride);
}

// A thread that waits for the other rank.
struct Wait {
  const Arguments& a;
  Mailbox* own;
  unsigned long long number; // of the next call, which a failure keeps from coming
  unsigned long long since = 0;
  int spins = 0;

  __device__ __forceinline__ explicit Wait(const Arguments& arguments) : a(arguments), own(arguments.mailboxes[arguments.rank]) {
    number = look(&own->call) + 1;
  }

  // Waits until the other rank has counted to n. False if it will not.
  __device__ __forceinline__ bool reaches(const unsigned long long* count, unsigned long long n) {
    while (look(count) < n) {
      if ((++spins & SPINS - 1) == 0 && hopeless(count, n)) return false;
    }
    fence();
    return true;
  }

  __device__ __noinline__ bool hopeless(const unsigned long long* count, unsigned long long n) {
    if (look(&own->stopped) == number) return true;
    unsigned long long time = now();
    if (since == 0) since = time;
    Failure failure = NONE;
    for (int parity = 0; parity < 2; parity++) {
      if ((look(&own->headers[parity][a.root]) & GAVE_UP) == GAVE_UP) failure = STOPPED; // comes no more
    }
    if (failure != NONE) {
      fence();
      if (look(count) >= n) return false; // it has sent this before
    }
    if (failure == NONE && (spins & SPINS_TO_HOST - 1) == 0 && look(&a.report->stop) != 0) failure = STOPPED;
    if (failure == NONE && time - since > a.timeout) failure = TIMED_OUT;
    if (failure == NONE) return false;
    fail(a, number, since, failure);
    return true;
  }
};

template <bool SENDS> __device__ __forceinline__ void message(const Arguments& a) {
  Wait wait(a);
  if (__syncthreads_or(look(&wait.own->broken) != 0)) return; // all or none: another block may just be setting it
  Pair &here = pair(a, a.rank, a.root), &there = pair(a, a.root, a.rank);
  unsigned long long* position = SENDS ? &here.sends[blockIdx.x] : &here.takes[blockIdx.x];
  unsigned long long n = look(position);
  char* elements = static_cast<char*>(a.buffers[a.rank]);
  long long chunk = a.stride * 16;
  for (long long at = blockIdx.x * chunk; at < a.count; at += gridDim.x * chunk, n++) {
    bool there_now = true;
    if (threadIdx.x == 0) {
      if (SENDS) {
        there_now = n < MESSAGE_SLOTS || wait.reaches(&here.taken[blockIdx.x], n + 1 - MESSAGE_SLOTS);
      } else {
        there_now = wait.reaches(&here.sent[blockIdx.x], n + 1);
      }
    }
    if (__syncthreads_or(!there_now)) return;
    long long bytes = min(chunk, a.count - at);
    if (SENDS) {
      copy_bytes(slot(a, a.root, a.rank, n), elements + at, bytes, threadIdx.x, blockDim.x);
    } else {
      copy_bytes(elements + at, slot(a, a.rank, a.root, n), bytes, threadIdx.x, blockDim.x);
    }
    __syncthreads();
    if (threadIdx.x == 0) tell_after_all(SENDS ? &there.sent[blockIdx.x] : &there.taken[blockIdx.x], n + 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) *position = n;
}

extern "C" __global__ void __launch_bounds__(512) message_send(const __grid_constant__ Arguments a) { message<true>(a); }
extern "C" __global__ void __launch_bounds__(512) message_receive(const __grid_constant__ Arguments a) { message<false>(a); }
