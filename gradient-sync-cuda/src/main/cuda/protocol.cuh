// What the ranks of a call write for each other, and how they wait for it.
//
// Every word that is waited for holds the number of the call, which only grows, and so needs no resetting and is never
// taken for another call's. The number is kept on the device: a captured launch counts on each replay. Calls also carry
// a tag, on which all ranks agreed, so a rank in another call than the others is found before any element is changed.

#pragma once

#include <climits>
#include <cstdint>

constexpr int MAX_RANKS = 16;
constexpr int MAX_BLOCKS = 512;

constexpr int TAG_BITS = 24; // below the number of the call: the tag, or the chunk
constexpr unsigned long long GAVE_UP = (1ULL << TAG_BITS) - 1; // instead of the tag: this rank comes no more
constexpr int OP_BITS = 3;     // of the tag; above them is the number of the buffer's registration
constexpr int INDEX_BITS = 43; // of what has been found; above them is the number of the buffer's registration
constexpr int FINDINGS = 4;    // of the last calls: while a rank is in its call k, others are in k + 2 at most

// How often a thread finds something not there before it looks around in its GPU's memory, and before it looks into the host's,
// too, which few averages should come to.
constexpr int SPINS = 1 << 10;
constexpr int SPINS_TO_HOST = 1 << 16;

enum Failure : unsigned long long { NONE, MISMATCH, TIMED_OUT, STOPPED };

// The head of a mailbox. PeerLayout.java knows its size.
struct Mailbox {
  unsigned long long call;    // number of the last finished call
  unsigned long long broken;  // not 0: no further call is possible
  unsigned long long stopped; // number of the last call that failed
  unsigned done;              // blocks that have finished the running call
  unsigned failing;           // 1: one thread is reporting a failure
  unsigned long long found;   // number of the last call in which something was not finite
  char pad[4096 - 40];
  // From each rank: call and tag, for even and odd calls: a rank may be a call ahead of another, or leave after a call
  // that another is still in.
  unsigned long long headers[2][MAX_RANKS];
  char pad2[4096 - 2 * MAX_RANKS * 8];
  unsigned long long flags[2][MAX_BLOCKS][MAX_RANKS]; // from each rank's blocks: call and chunk
};
static_assert(sizeof(Mailbox) == 2 * 4096 + 2 * MAX_BLOCKS * MAX_RANKS * 8, "");

// What a failure leaves for the host, in page-locked memory.
struct Report {
  unsigned long long stop; // the host sets it to end a waiting kernel
  unsigned long long failure;
  unsigned long long call;
  unsigned long long tag;
  unsigned long long waited; // nanoseconds
  unsigned long long headers[MAX_RANKS];
};

// What a rank's GPU tells the hosts of all ranks, in page-locked memory: one finding of a call, each in the place of the
// one FINDINGS calls before. PeerProgress.java knows this layout.
struct Found {
  unsigned long long what[FINDINGS]; // the number of the buffer's registration and, below it, the index, counted from 1
  unsigned long long call[FINDINGS]; // in which it was found
  unsigned long long done;           // the last call that has ended
};

// PeerLaunch.java knows this layout.
struct Arguments {
  Mailbox* mailboxes[MAX_RANKS];
  void* buffers[MAX_RANKS];
  uint4* staging[MAX_RANKS]; // in the mailboxes, what this way of sending uses
  Report* report;
  long long count;            // elements
  long long stride;           // vectors between the parts of the staging
  unsigned long long tag;
  unsigned long long timeout; // nanoseconds
  int rank;
  int ranks;
  int batches; // in stream: how many times BATCH vectors a thread handles per chunk; in broadcast: the parts
  int aligned; // bit r: rank r's buffer begins at a multiple of 16 bytes
  int op;
  int root; // of a broadcast; in message.cu the other rank, in stream_parts the number of parts
  Found* found;    // in kernels that check for NaN and infinities
  long long first; // index in the registered buffer of the first element here
  char* local;     // this rank's output; in put.cuh its input, in stream_parts the table of parts; or null
};

__device__ __forceinline__ void store(uint4* to, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
// By all of a warp, together: that is what makes lines of what its threads write or read.
__device__ __forceinline__ void send_line(uint4* to, uint4 v) {
  __syncwarp();
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ uint4 receive(const uint4* from) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ uint4 receive_line(const uint4* from) {
  __syncwarp();
  return receive(from);
}
__device__ __forceinline__ void tell(unsigned long long* to, unsigned long long v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}
__device__ __forceinline__ void tell_after_all(unsigned long long* to, unsigned long long v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}
__device__ __forceinline__ unsigned long long look(const unsigned long long* from) {
  unsigned long long v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}
// What this thread reads or writes after it is not before what was told with tell_after_all. Costs less than a fence behind look.
__device__ __forceinline__ unsigned long long look_before_all(const unsigned long long* from) {
  unsigned long long v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ unsigned long long now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// The rank that is k after this one: each begins with another, so that the links are used evenly.
__device__ __forceinline__ int after(const Arguments& a, int k) {
  int rank = a.rank + k;
  return rank >= a.ranks ? rank - a.ranks : rank;
}

// Whether a header says that its rank has left this call or an earlier one.
__device__ __forceinline__ bool gave_up(unsigned long long header, unsigned long long number) {
  return (header & GAVE_UP) == GAVE_UP && header >> TAG_BITS <= number;
}

// The first thread that finds a failure reports it; the others follow when they see `stopped`.
__device__ __noinline__ void fail(const Arguments& a, unsigned long long number, unsigned long long since, Failure failure) {
  Mailbox* own = a.mailboxes[a.rank];
  if (atomicExch(&own->failing, 1) != 0) {
    while (look(&own->stopped) != number) {
    }
    return;
  }
  if (look(&own->stopped) != number) {
    if (look(&a.report->failure) == NONE) { // an earlier one that the host has not read yet is the one that counts
      a.report->call = number;
      a.report->tag = a.tag;
      a.report->waited = now() - since;
      for (int rank = 0; rank < a.ranks; rank++) {
        unsigned long long other = look(&own->headers[number & 1][rank]), before = look(&own->headers[number + 1 & 1][rank]);
        if (gave_up(before, number)) other = before;
        a.report->headers[rank] = rank == a.rank ? number << TAG_BITS | a.tag : other;
      }
      tell_after_all(&a.report->failure, failure);
    }
    // Nobody can go on: what has been enqueued behind this call on one rank need not belong to what has been on another.
    tell(&own->broken, 1);
    // In a mismatch all have to see each other's headers, and block 0, which tells them, may not have begun.
    unsigned long long header = number << TAG_BITS | (failure == MISMATCH ? a.tag : GAVE_UP);
    for (int rank = 0; rank < a.ranks; rank++) {
      if (rank != a.rank) tell(&a.mailboxes[rank]->headers[number & 1][a.rank], header);
    }
    fence();
    tell(&own->stopped, number);
  }
  fence();
  atomicExch(&own->failing, 0);
}

// Whether there is a reason not to wait longer: 0 if there is, or else since when this thread waits. `at_host`: whether to look
// into the host's memory, too. That goes over PCIe, and products that run meanwhile get slower if it is done often.
__device__ __noinline__ unsigned long long look_around(const Arguments& a, unsigned long long number, unsigned long long since,
                                                       bool at_host) {
  Mailbox* own = a.mailboxes[a.rank];
  if (look(&own->stopped) == number) return 0;
  unsigned long long time = now(), header = number << TAG_BITS | a.tag;
  if (since == 0) since = time;
  Failure failure = NONE;
  bool all = true; // have come: so the report is complete
  for (int rank = 0; rank < a.ranks; rank++) {
    if (rank == a.rank) continue;
    unsigned long long other = look(&own->headers[number & 1][rank]);
    all = all && other >> TAG_BITS == number;
    if (gave_up(other, number) || gave_up(look(&own->headers[number + 1 & 1][rank]), number)) {
      failure = STOPPED;
    } else if (other >> TAG_BITS == number && other != header && failure == NONE) {
      failure = MISMATCH;
    }
  }
  if (failure == MISMATCH && !all) failure = NONE;
  if (failure == NONE && at_host && look(&a.report->stop) != 0) failure = STOPPED;
  if (failure == NONE && time - since > a.timeout) failure = TIMED_OUT;
  if (failure == NONE) return since;
  fail(a, number, since, failure);
  return 0;
}

// One call of this rank: its number, and what to do when others do not come.
struct Call {
  const Arguments& a;
  Mailbox* own;
  unsigned long long number;
  unsigned long long header;
  unsigned long long since = 0;
  int spins = 0;
  bool failed = false;
  bool broken; // an earlier call failed in such a way that there is no going on

  __device__ __forceinline__ explicit Call(const Arguments& arguments) : a(arguments), own(arguments.mailboxes[arguments.rank]) {
    unsigned long long last, unusable;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(last), "=l"(unusable) : "l"(own) : "memory");
    number = last + 1;
    header = number << TAG_BITS | a.tag;
    broken = unusable != 0;
    if (blockIdx.x == 0 && threadIdx.x < a.ranks && threadIdx.x != a.rank && !broken) {
      tell(&a.mailboxes[threadIdx.x]->headers[number & 1][a.rank], header);
    }
  }

  // To be called each time that something is not there yet; true if it is not worth waiting longer.
  __device__ __forceinline__ bool hopeless() {
    if ((++spins & SPINS - 1) == 0 && !failed) {
      since = look_around(a, number, since, (spins & SPINS_TO_HOST - 1) == 0);
      failed = since == 0;
    }
    return failed;
  }

  // The last block counts the call, for the next launch.
  template <bool CHECK_FINITE = false> __device__ __forceinline__ void finish() {
    __syncthreads();
    if (threadIdx.x == 0) {
      if (atomicAdd(&own->done, 1) == gridDim.x - 1) {
        own->done = 0;
        if (CHECK_FINITE) tell(&a.found->done, number);
        own->call = number;
      }
    }
  }
};

// Says that an element is not finite; of a call's, the first that comes here.
__device__ __noinline__ void not_finite(const Arguments& a, long long index) {
  Mailbox* own = a.mailboxes[a.rank];
  unsigned long long number = look(&own->call) + 1; // no block counts this call before all have finished
  if (look(&own->found) >= number || atomicMax(&own->found, number) >= number) return;
  int place = number % FINDINGS;
  tell(&a.found->what[place], a.tag >> OP_BITS << INDEX_BITS | (unsigned long long)(a.first + index + 1));
  tell_after_all(&a.found->call[place], number);
  fence(); // before this thread sends anything
}
