// All-reduce among GPUs that reach each other's memory: each rank runs the same kernel on its GPU at the same time.
//
// What one rank writes for another goes into that rank's mailbox, a piece of its memory that all have mapped. The ways:
//
//   one_shot           every rank sends all its elements to all others, and each reduces everything. One crossing of the links.
//   two_shot           each rank owns a shard: it gets that shard from all, reduces it, and sends the result to all.
//   two_shot_unrolled  as two_shot, but a warp has several lines on their way at once, for which it takes more registers.
//   stream             as two_shot, in chunks through a bounded part of the mailbox; results go straight into the buffers.
//   stream_few_ctas    as stream, with fewer blocks that have more in flight each: leaves more of the GPU to other work.
//   staged             as stream_few_ctas, but results go through the staging, too: for elements that travel in another type
//                      than they lie in.
//
// And broadcast, in which one rank sends all its elements to all others.
//
// one_shot, two_shot and two_shot_unrolled send lines of 128 bytes, 112 of data and 16 that say which call they are of, so data
// needs no fence and no flag of its own. A line is written by eight threads of a warp with one instruction and read in the
// same way, which NVLink carries as a whole (NCCL's protocol LL128 rests on the same).
//
// Every word that is waited for holds the number of the call, which only grows, and so needs no resetting and is never
// taken for another call's. The number is kept on the device: a captured launch counts on each replay. Calls also carry
// the number of the plan, on which all ranks agreed, so a rank in another call than the others is found before any
// element is changed.
//
// In kernels with CHECK_FINITE each thread looks for NaN and infinities among this rank's elements before it sends them. So
// what a rank has found lies in the host's memory when the others have its elements. These kernels are compiled apart: even
// a branch that is not taken costs the others registers.

#include <climits>

#include "arithmetic.cuh"

constexpr int MAX_RANKS = 16;
constexpr int MAX_BLOCKS = 512;
constexpr int LINE = 8;      // vectors of 16 bytes in a line, the last of which says which call it is of
constexpr int SLOTS = 4;     // of staging for stream
constexpr int WORKERS = 480; // threads of a block of stream; the last warp carries messages

// Vectors that a worker has in flight, for which two blocks of stream share an SM's registers. In stream_few_ctas and staged
// half as many of types of 16 bits, which are added up in twice the registers.
constexpr int STREAM_BATCH = 2;
constexpr int FEW_CTAS_BATCH = 8;
template <class F> constexpr int FEW_CTAS_BATCH_OF = sizeof(typename F::Stored) == 2 ? FEW_CTAS_BATCH / 2 : FEW_CTAS_BATCH;

constexpr int TAG_BITS = 24; // below the number of the call: the plan, or the chunk
constexpr unsigned long long GAVE_UP = (1ULL << TAG_BITS) - 1; // instead of the plan: this rank comes no more
constexpr int OP_BITS = 3;     // of the plan; above them is the number of the buffer's registration
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
  // From each rank: call and plan, for even and odd calls: a rank may be a call ahead of another, or leave after a call
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
  unsigned long long plan;
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
  unsigned long long plan;
  unsigned long long timeout; // nanoseconds
  int rank;
  int ranks;
  int batches; // in stream: how many times BATCH vectors a thread handles per chunk
  int aligned; // bit r: rank r's buffer begins at a multiple of 16 bytes
  int op;
  int root; // of a broadcast
  Found* found;    // in kernels that check for NaN and infinities
  long long first; // index in the registered buffer of the first element here
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
      a.report->plan = a.plan;
      a.report->waited = now() - since;
      for (int rank = 0; rank < a.ranks; rank++) {
        unsigned long long other = look(&own->headers[number & 1][rank]), before = look(&own->headers[number + 1 & 1][rank]);
        if (gave_up(before, number)) other = before;
        a.report->headers[rank] = rank == a.rank ? number << TAG_BITS | a.plan : other;
      }
      tell_after_all(&a.report->failure, failure);
    }
    // Nobody can go on: what has been enqueued behind this call on one rank need not belong to what has been on another.
    tell(&own->broken, 1);
    // In a mismatch all have to see each other's headers, and block 0, which tells them, may not have begun.
    unsigned long long header = number << TAG_BITS | (failure == MISMATCH ? a.plan : GAVE_UP);
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
  unsigned long long time = now(), header = number << TAG_BITS | a.plan;
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
    header = number << TAG_BITS | a.plan;
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
  tell(&a.found->what[place], a.plan >> OP_BITS << INDEX_BITS | (unsigned long long)(a.first + index + 1));
  tell_after_all(&a.found->call[place], number);
  fence(); // before this thread sends anything
}

template <int BYTES> struct Word;
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint64_t; };

// Looks at this rank's elements, up to n vectors of them: i, i + step and so on, those below `last`. One finding is enough.
template <class F>
__device__ __noinline__ void inspect(const Arguments& a, long long i, long long last, int n, int step) {
  if constexpr (F::KEPT_EXPONENT != 0) {
    using Bits = typename Word<sizeof(typename F::Kept)>::Type;
    constexpr int SIZE = 16 / sizeof(typename F::Stored); // elements in a vector, which may take two as they lie in buffers
    constexpr int PARTS = SIZE * sizeof(Bits) / 16, PART = SIZE / PARTS;
    constexpr Bits MASK = (Bits)F::KEPT_EXPONENT;
    const Bits* elements = static_cast<const Bits*>(a.buffers[a.rank]);
    bool aligned = a.aligned >> a.rank & 1;
    long long bad = -1;
#pragma unroll 4
    for (int k = 0; k < n; k++, i += step) {
      if (i >= last) break;
      if (aligned && (i + 1) * SIZE <= a.count) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
          uint4 v = reinterpret_cast<const uint4*>(elements)[i * PARTS + part];
          const Bits* x = reinterpret_cast<const Bits*>(&v);
#pragma unroll
          for (int e = 0; e < PART; e++) {
            if ((x[e] & MASK) == MASK) bad = i * SIZE + part * PART + e;
          }
        }
      } else {
        for (long long e = i * SIZE; e < min(a.count, (i + 1) * SIZE); e++) {
          if ((elements[e] & MASK) == MASK) bad = e;
        }
      }
    }
    if (bad >= 0) not_finite(a, bad);
  }
}

// SUM and AVERAGE share their kernels, and so do the other operations.
enum Family { ADDING, OTHER };

// Vectors of 16 bytes, as they are stored and as they are added up.
template <class F, int FAMILY> struct Vector {
  using Stored = typename F::Stored;
  using Kept = typename F::Kept;
  static constexpr bool NARROWED = sizeof(Kept) != sizeof(Stored);
  static constexpr int KEPT = sizeof(Kept) / sizeof(Stored); // vectors in a buffer for one that travels
  static constexpr int SIZE = 16 / sizeof(Stored);
  static_assert(!NARROWED || KEPT == 2, "");
  typename F::Accumulated sum[SIZE];

  __device__ __forceinline__ void first(const uint4& v) {
    const Stored* x = reinterpret_cast<const Stored*>(&v);
#pragma unroll
    for (int i = 0; i < SIZE; i++) sum[i] = F::load(x[i]);
  }
  template <int OP> __device__ __forceinline__ void combine_all(const Stored* x) {
#pragma unroll
    for (int i = 0; i < SIZE; i++) sum[i] = combine<OP>(sum[i], F::load(x[i]));
  }
  __device__ __forceinline__ void next(const uint4& v, int op) {
    const Stored* x = reinterpret_cast<const Stored*>(&v);
    if (FAMILY == ADDING) {
      combine_all<SUM>(x);
    } else if (op == MIN) {
      combine_all<MIN>(x);
    } else if (op == MAX) {
      combine_all<MAX>(x);
    } else {
      combine_all<PROD>(x);
    }
  }
  __device__ __forceinline__ uint4 result(int op, int ranks) const {
    uint4 v;
    Stored* x = reinterpret_cast<Stored*>(&v);
    typename F::Accumulated y[SIZE];
    bool nan = false;
#pragma unroll
    for (int i = 0; i < SIZE; i++) {
      y[i] = FAMILY == ADDING && op == AVERAGE ? divide(sum[i], ranks) : sum[i];
      nan |= y[i] != y[i];
    }
    if constexpr (PACKS && sizeof(Stored) == 2) {
      if (!nan) return make_uint4(F::pack(y[0], y[1]), F::pack(y[2], y[3]), F::pack(y[4], y[5]), F::pack(y[6], y[7]));
    }
#pragma unroll
    for (int i = 0; i < SIZE; i++) x[i] = F::store(y[i]);
    return v;
  }
  // What travels of an element, and what becomes of a result.
  static __device__ __forceinline__ Stored narrow(Kept x) {
    if constexpr (NARROWED) {
      return F::store(x);
    } else {
      return x;
    }
  }
  static __device__ __forceinline__ Kept widen(Stored x) {
    if constexpr (NARROWED) {
      return F::widen(x);
    } else {
      return x;
    }
  }
  // A whole vector that begins where vectors do.
  static __device__ __forceinline__ uint4 read(const void* buffer, long long i) {
    if constexpr (NARROWED) {
      const uint4* from = static_cast<const uint4*>(buffer) + i * KEPT;
      uint4 first = from[0], second = from[1];
      uint2 low = narrow(first), high = narrow(second);
      return make_uint4(low.x, low.y, high.x, high.y);
    } else {
      return static_cast<const uint4*>(buffer)[i];
    }
  }
  static __device__ __forceinline__ void write(void* buffer, long long i, const uint4& v) {
    if constexpr (NARROWED) {
      uint4* to = static_cast<uint4*>(buffer) + i * KEPT;
      store(to, widen(make_uint2(v.x, v.y)));
      store(to + 1, widen(make_uint2(v.z, v.w)));
    } else {
      store(static_cast<uint4*>(buffer) + i, v);
    }
  }
  // Which of a warp's 32 vectors a lane handles. Where a vector is two in the buffer, two lanes that are neighbors share
  // four of those: the two lie 8 apart that a lane reads or writes, so that each access of eight lanes is to 128 bytes in a
  // row, in the buffer and where vectors travel.
  static __device__ __forceinline__ int place(int lane) {
    return NARROWED ? (lane & 24) | (lane & 1) << 2 | (lane & 7) >> 1 : lane;
  }
  // The first of the two in the buffer that a lane accesses, if i is the vector of its place.
  static __device__ __forceinline__ long long first_of(long long i, int lane) {
    return (i - place(lane)) * KEPT + (lane & 24) * KEPT + (lane & 7);
  }
  // By all of a warp, each lane for the vector of its place: as read and write.
  static __device__ __forceinline__ uint4 read_together(const void* buffer, long long i) {
    if constexpr (NARROWED) {
      int lane = threadIdx.x & 31;
      const uint4* from = static_cast<const uint4*>(buffer) + first_of(i, lane);
      uint2 low = narrow(from[0]), high = narrow(from[8]);
      uint2 other = exchange(lane & 1 ? low : high);
      return lane & 1 ? make_uint4(other.x, other.y, high.x, high.y) : make_uint4(low.x, low.y, other.x, other.y);
    } else {
      return read(buffer, i);
    }
  }
  static __device__ __forceinline__ void write_together(void* buffer, long long i, const uint4& v) {
    if constexpr (NARROWED) {
      int lane = threadIdx.x & 31;
      uint4* to = static_cast<uint4*>(buffer) + first_of(i, lane);
      uint2 first = make_uint2(v.x, v.y), second = make_uint2(v.z, v.w);
      uint2 other = exchange(lane & 1 ? first : second);
      store(to, widen(lane & 1 ? other : first));
      store(to + 8, widen(lane & 1 ? second : other));
    } else {
      write(buffer, i, v);
    }
  }
  static __device__ __forceinline__ uint2 exchange(uint2 v) {
    return make_uint2(__shfl_xor_sync(~0u, v.x, 1), __shfl_xor_sync(~0u, v.y, 1));
  }
  // Half a vector that travels, and one in a buffer.
  static __device__ __forceinline__ uint2 narrow(const uint4& kept) {
    const Kept* from = reinterpret_cast<const Kept*>(&kept);
    if constexpr (PACKS) {
      return make_uint2(F::pack(from[0], from[1]), F::pack(from[2], from[3]));
    }
    uint2 v;
    Stored* x = reinterpret_cast<Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE / 2; k++) x[k] = narrow(from[k]);
    return v;
  }
  static __device__ __forceinline__ uint4 widen(const uint2& v) {
    uint4 kept;
    const Stored* from = reinterpret_cast<const Stored*>(&v);
    Kept* x = reinterpret_cast<Kept*>(&kept);
#pragma unroll
    for (int k = 0; k < SIZE / 2; k++) x[k] = widen(from[k]);
    return kept;
  }
  // Vector i of a buffer. The last may be a part, and slices need not begin where vectors do.
  static __device__ __forceinline__ uint4 read(const void* buffer, long long i, long long count, bool aligned) {
    if (aligned && (i + 1) * SIZE <= count) return read(buffer, i);
    uint4 v = make_uint4(0, 0, 0, 0);
    Stored* x = reinterpret_cast<Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE; k++) {
      if (i * SIZE + k < count) x[k] = narrow(static_cast<const volatile Kept*>(buffer)[i * SIZE + k]);
    }
    return v;
  }
  static __device__ __forceinline__ void write(void* buffer, long long i, long long count, bool aligned, const uint4& v) {
    if (aligned && (i + 1) * SIZE <= count) {
      write(buffer, i, v);
      return;
    }
    const Stored* x = reinterpret_cast<const Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE; k++) {
      if (i * SIZE + k < count) static_cast<volatile Kept*>(buffer)[i * SIZE + k] = widen(x[k]);
    }
  }
};

// The place of a thread in the lines that its warp handles: four at a time, 28 vectors of data.
struct Lane {
  static constexpr int VECTORS = 32 / LINE * (LINE - 1);
  int lane = threadIdx.x & 31;
  bool data = (lane & (LINE - 1)) != LINE - 1;
  int offset = lane / LINE * (LINE - 1) + (lane & (LINE - 1));
  int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int warps = gridDim.x * (blockDim.x / 32);

  // This lane's vector of a round, of which `end` is the first that is not there.
  template <class V>
  __device__ __forceinline__ uint4 vector(const void* buffer, long long round, long long end, long long count, bool aligned) const {
    long long i = round * VECTORS + offset;
    return data && i < end ? V::read(buffer, i, count, aligned) : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ uint4 tagged(const uint4& v, unsigned long long header) const {
    return data ? v : make_uint4((unsigned)header, (unsigned)(header >> 32), 0, 0);
  }
  __device__ __forceinline__ bool here(const uint4& v, unsigned long long header) const {
    return data || (v.x == (unsigned)header && v.y == (unsigned)(header >> 32));
  }
};

// Looks at what this thread sends in lines, a shard for each rank or one for all.
template <class F> __device__ __noinline__ void inspect_lines(const Arguments& a, int shards) {
  constexpr int SIZE = 16 / sizeof(typename F::Stored);
  Lane lane;
  long long vectors = (a.count + SIZE - 1) / SIZE, shard = (vectors + shards - 1) / shards;
  for (int owner = 0; owner < shards && lane.data; owner++) {
    long long i = owner * shard + lane.warp * Lane::VECTORS + lane.offset;
    inspect<F>(a, i, min(vectors, (owner + 1) * shard), INT_MAX, (int)(lane.warps * Lane::VECTORS));
  }
}

// Waits for one rank's lines. False if they do not come.
__device__ __forceinline__ bool await(Call& call, const Lane& lane, const uint4* from, uint4& v) {
  while (true) {
    v = receive_line(from);
    if (!__any_sync(~0u, !lane.here(v, call.header))) return true;
    if (__any_sync(~0u, call.hopeless())) {
      call.failed = true; // for all of the warp, which stays together
      return false;
    }
  }
}

// Waits for the lines of all other ranks and reduces them and this rank's own, in rank order. False if they do not come.
template <class F, int FAMILY>
__device__ __forceinline__ bool gather(Call& call, const Lane& lane, const uint4* from, const uint4& own, uint4& result) {
  constexpr int GROUP = 8; // ranks whose lines are in flight at once
  const Arguments& a = call.a;
  Vector<F, FAMILY> sum;
  for (int begin = 0; begin < a.ranks; begin += GROUP) {
    uint4 v[GROUP];
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int k = 0; k < GROUP; k++) {
        int rank = begin + k;
        if (rank < a.ranks) v[k] = rank == a.rank ? own : receive_line(from + rank * a.stride);
      }
#pragma unroll
      for (int k = 0; k < GROUP; k++) {
        int rank = begin + k;
        if (rank < a.ranks) missing |= !lane.here(v[k], call.header);
      }
      missing = __any_sync(~0u, missing);
      if (missing && __any_sync(~0u, call.hopeless())) {
        call.failed = true; // for all of the warp, which stays together
        return false;
      }
    } while (missing);
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
      int rank = begin + k;
      if (rank == 0) {
        sum.first(v[k]);
      } else if (rank < a.ranks) {
        sum.next(v[k], a.op);
      }
    }
  }
  result = sum.result(a.op, a.ranks);
  return true;
}

// Staging: for odd and even calls, for each sending rank, its lines. The two keep a fast rank, which may begin the next
// call when it has everybody's lines, from writing over what a slow one has not read: it cannot be two calls ahead.
template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void one_shot(const Arguments& a) {
  if constexpr (CHECK_FINITE) inspect_lines<F>(a, 1);
  using V = Vector<F, FAMILY>;
  Lane lane;
  void* buffer = a.buffers[a.rank];
  bool aligned = a.aligned >> a.rank & 1;
  long long vectors = (a.count + V::SIZE - 1) / V::SIZE, rounds = (vectors + Lane::VECTORS - 1) / Lane::VECTORS;
  // The first vector is on its way while the call's number is.
  uint4 v = lane.vector<V>(buffer, lane.warp, vectors, a.count, aligned);
  Call call(a);
  if (call.broken) return;
  long long parity = (call.number & 1) * a.ranks * a.stride;
  for (long long round = lane.warp; round < rounds; round += lane.warps) {
    v = lane.tagged(v, call.header);
    for (int k = 1; k < a.ranks; k++) send_line(a.staging[after(a, k)] + parity + a.rank * a.stride + round * 32 + lane.lane, v);
    v = lane.vector<V>(buffer, round + lane.warps, vectors, a.count, aligned);
  }
  for (long long round = lane.warp; round < rounds; round += lane.warps) {
    long long i = round * Lane::VECTORS + lane.offset;
    bool mine = lane.data && i < vectors;
    uint4 own = lane.tagged(mine ? V::read(buffer, i, a.count, aligned) : make_uint4(0, 0, 0, 0), call.header), result;
    if (!gather<F, FAMILY>(call, lane, a.staging[a.rank] + parity + round * 32 + lane.lane, own, result)) break;
    if (mine) V::write(buffer, i, a.count, aligned, result);
  }
  call.finish<CHECK_FINITE>();
}

// Uses one_shot's staging. The root begins when all others have come; so it is not ahead of them, and neither is a rank
// that has got what the root sent.
template <class F> __device__ __forceinline__ void broadcast(const Arguments& a) {
  using V = Vector<F, ADDING>;
  Call call(a);
  if (call.broken) return;
  Lane lane;
  void* buffer = a.buffers[a.rank];
  bool aligned = a.aligned >> a.rank & 1;
  long long vectors = (a.count + V::SIZE - 1) / V::SIZE, rounds = (vectors + Lane::VECTORS - 1) / Lane::VECTORS;
  long long from = ((call.number & 1) * a.ranks + a.root) * a.stride + lane.lane;
  if (a.rank == a.root) {
    if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
      while (look(&call.own->headers[call.number & 1][threadIdx.x]) != call.header && !call.hopeless()) {
      }
    }
    call.failed = __syncthreads_or(call.failed);
  }
  for (long long round = lane.warp; round < rounds && !call.failed; round += lane.warps) {
    long long i = round * Lane::VECTORS + lane.offset;
    bool mine = lane.data && i < vectors;
    if (a.rank == a.root) {
      uint4 v = lane.tagged(mine ? V::read(buffer, i, a.count, aligned) : make_uint4(0, 0, 0, 0), call.header);
      for (int k = 1; k < a.ranks; k++) send_line(a.staging[after(a, k)] + from + round * 32, v);
    } else {
      uint4 v;
      if (await(call, lane, a.staging[a.rank] + from + round * 32, v) && mine) V::write(buffer, i, a.count, aligned, v);
    }
  }
  call.finish();
}

// A warp's lines for the other ranks: of each of its rounds, one after the other, to each of them. GROUP of these are on
// their way at once. Buffers that go in lines are small: an int counts their vectors, and takes half a long's registers.
template <class V, int GROUP> struct Shards {
  const Arguments& a;
  const Lane& lane;
  int vectors = ((int)a.count + V::SIZE - 1) / V::SIZE;
  int shard = (vectors + a.ranks - 1) / a.ranks;
  int rounds = (shard + Lane::VECTORS - 1) / Lane::VECTORS;
  int round = lane.warp; // of the group's first
  int next_rank = 1;     // so many ranks after this one
  uint4 v[GROUP];

  __device__ __forceinline__ Shards(const Arguments& arguments, const Lane& l) : a(arguments), lane(l) {}

  __device__ __forceinline__ bool more() const { return round < rounds; }
  __device__ __forceinline__ void step(int& k, int& r) const {
    if (++k == a.ranks) {
      k = 1;
      r += lane.warps;
    }
  }
  __device__ __forceinline__ void next() {
#pragma unroll
    for (int u = 0; u < GROUP; u++) step(next_rank, round);
  }
  __device__ __forceinline__ int index(int owner, int r) const { return owner * shard + r * Lane::VECTORS + lane.offset; }
  __device__ __forceinline__ bool has(int owner, int i) const {
    return lane.data && i < min(vectors, (owner + 1) * shard);
  }
  // Several at once are for vectors that are all whole: the code for others is too long to be there so many times.
  __device__ __forceinline__ void read() {
    const void* buffer = a.buffers[a.rank];
    int k = next_rank, r = round;
#pragma unroll
    for (int u = 0; u < GROUP; u++, step(k, r)) {
      if (r >= rounds) break;
      int owner = after(a, k);
      int i = index(owner, r);
      v[u] = make_uint4(0, 0, 0, 0);
      if (has(owner, i)) v[u] = GROUP > 1 ? V::read(buffer, i) : V::read(buffer, i, a.count, a.aligned >> a.rank & 1);
    }
  }
  __device__ __forceinline__ void send(unsigned long long header) const {
    int k = next_rank, r = round;
#pragma unroll
    for (int u = 0; u < GROUP; u++, step(k, r)) {
      if (r >= rounds) break;
      uint4* to = a.staging[after(a, k)] + a.rank * a.stride + lane.lane;
      send_line(to + r * 32, lane.tagged(v[u], header));
    }
  }
  // Waits for the owners' lines of results. False if they do not come.
  __device__ __forceinline__ bool await(Call& call, const uint4* results) {
    bool missing;
    do {
      missing = false;
      int k = next_rank, r = round, here = 0;
#pragma unroll
      for (int u = 0; u < GROUP; u++, step(k, r)) {
        if (r >= rounds) break;
        v[u] = receive_line(results + after(a, k) * a.stride + r * 32 + lane.lane);
        here = u + 1;
      }
#pragma unroll
      for (int u = 0; u < GROUP; u++) {
        if (u < here) missing |= !lane.here(v[u], call.header);
      }
      missing = __any_sync(~0u, missing);
      if (missing && __any_sync(~0u, call.hopeless())) {
        call.failed = true; // for all of the warp, which stays together
        return false;
      }
    } while (missing);
    return true;
  }
  __device__ __forceinline__ void write() const {
    void* buffer = a.buffers[a.rank];
    int k = next_rank, r = round;
#pragma unroll
    for (int u = 0; u < GROUP; u++, step(k, r)) {
      if (r >= rounds) break;
      int owner = after(a, k);
      int i = index(owner, r);
      if (!has(owner, i)) continue;
      if (GROUP > 1) {
        V::write(buffer, i, v[u]);
      } else {
        V::write(buffer, i, a.count, a.aligned >> a.rank & 1, v[u]);
      }
    }
  }
};

// Several of a warp's rounds of this rank's own shard at once, so that the lines of few ranks are on their way together, too:
// LINES of them, for at most half as many ranks. Vectors are whole. False if lines do not come.
template <class F, int FAMILY, int LINES>
__device__ __forceinline__ bool reduce_rounds(Call& call, const Lane& lane, int first, int rounds, int begin, int end) {
  using V = Vector<F, FAMILY>;
  const Arguments& a = call.a;
  void* buffer = a.buffers[a.rank];
  const uint4* from = a.staging[a.rank] + lane.lane;
  int lines = LINES / a.ranks * a.ranks;
  uint4 v[LINES];
  bool missing;
  do {
    missing = false;
    int rank = 0, round = first;
#pragma unroll
    for (int u = 0; u < LINES; u++) {
      if (u >= lines || round >= rounds) break;
      int i = begin + round * Lane::VECTORS + lane.offset;
      if (rank != a.rank) {
        v[u] = receive_line(from + rank * a.stride + round * 32);
      } else {
        v[u] = lane.tagged(lane.data && i < end ? V::read(buffer, i) : make_uint4(0, 0, 0, 0), call.header);
      }
      if (++rank == a.ranks) {
        rank = 0;
        round += lane.warps;
      }
    }
    int there = min(lines, (rounds - first + lane.warps - 1) / lane.warps * a.ranks);
#pragma unroll
    for (int u = 0; u < LINES; u++) {
      if (u < there) missing |= !lane.here(v[u], call.header);
    }
    missing = __any_sync(~0u, missing);
    if (missing && __any_sync(~0u, call.hopeless())) {
      call.failed = true; // for all of the warp, which stays together
      return false;
    }
  } while (missing);
  V sum;
  int rank = 0, round = first;
#pragma unroll
  for (int u = 0; u < LINES; u++) {
    if (u >= lines || round >= rounds) break;
    if (rank == 0) {
      sum.first(v[u]);
    } else {
      sum.next(v[u], a.op);
    }
    if (++rank == a.ranks) {
      uint4 result = sum.result(a.op, a.ranks), line = lane.tagged(result, call.header);
      for (int k = 1; k < a.ranks; k++) {
        send_line(a.staging[after(a, k)] + (a.ranks + a.rank) * a.stride + round * 32 + lane.lane, line);
      }
      int i = begin + round * Lane::VECTORS + lane.offset;
      if (lane.data && i < end) V::write(buffer, i, result);
      rank = 0;
      round += lane.warps;
    }
  }
  return true;
}

// Staging: for each sending rank, its lines of the receiver's shard; then for each owner, the lines of its result.
// Every rank sends to every other in both halves, so nobody can be ahead of what the others have read.
template <class F, int FAMILY, bool CHECK_FINITE, int GROUP> __device__ __forceinline__ void by_shards(const Arguments& a) {
  if constexpr (CHECK_FINITE) inspect_lines<F>(a, a.ranks);
  using V = Vector<F, FAMILY>;
  Lane lane;
  Shards<V, GROUP> shards(a, lane);
  shards.read(); // the first vectors are on their way while the call's number is
  Call call(a);
  if (call.broken) return;
  while (shards.more()) {
    shards.send(call.header);
    shards.next();
    if (shards.more()) shards.read();
  }
  void* buffer = a.buffers[a.rank];
  bool aligned = a.aligned >> a.rank & 1;
  long long results = a.ranks * a.stride, end = min(shards.vectors, (a.rank + 1) * shards.shard);
  constexpr int LINES = 2 * GROUP;
  int together = GROUP > 1 && a.ranks <= GROUP ? LINES / a.ranks : 1; // rounds
  for (int round = lane.warp; round < shards.rounds; round += together * lane.warps) {
    if constexpr (GROUP > 1) {
      if (together > 1) {
        if (!reduce_rounds<F, FAMILY, LINES>(call, lane, round, shards.rounds, a.rank * shards.shard, (int)end)) break;
        continue;
      }
    }
    int i = a.rank * shards.shard + round * Lane::VECTORS + lane.offset;
    bool mine = lane.data && i < end;
    uint4 own = lane.tagged(mine ? V::read(buffer, i, a.count, aligned) : make_uint4(0, 0, 0, 0), call.header), result;
    if (!gather<F, FAMILY>(call, lane, a.staging[a.rank] + round * 32 + lane.lane, own, result)) break;
    uint4 v = lane.tagged(result, call.header);
    for (int k = 1; k < a.ranks; k++) send_line(a.staging[after(a, k)] + results + a.rank * a.stride + round * 32 + lane.lane, v);
    if (mine) V::write(buffer, i, a.count, aligned, result);
  }
  for (Shards<V, GROUP> owners(a, lane); owners.more() && !call.failed; owners.next()) {
    if (owners.await(call, a.staging[a.rank] + results)) owners.write();
  }
  call.finish<CHECK_FINITE>();
}

template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void two_shot(const Arguments& a) {
  by_shards<F, FAMILY, CHECK_FINITE, 1>(a);
}
// For buffers of whole vectors that begin where vectors do. Sends the same lines as two_shot, so each rank may choose.
template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void two_shot_unrolled(const Arguments& a) {
  by_shards<F, FAMILY, CHECK_FINITE, 4>(a);
}

// Named barriers, in which some warps wait and others only say that they have come.
__device__ __forceinline__ void barrier_wait(int barrier) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(WORKERS + 32) : "memory");
}
__device__ __forceinline__ void barrier_come(int barrier) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(WORKERS + 32) : "memory");
}

// A block's part of a chunk: one batch of vectors after the other, which lie between those of the other blocks. A worker
// has BATCH vectors in flight.
template <class F, int FAMILY, int BATCH> struct Tile {
  using V = Vector<F, FAMILY>;
  static constexpr int SIZE = WORKERS * BATCH; // of a batch
  const Arguments& a;
  long long vectors = (a.count + V::SIZE - 1) / V::SIZE;
  long long shard = (vectors + a.ranks - 1) / a.ranks;
  long long stride = (long long)SIZE * gridDim.x; // from one batch of a block to its next
  long long chunk = stride * a.batches;
  int place = (threadIdx.x & ~31) + V::place(threadIdx.x & 31); // of this thread's first vector in a batch
  long long at = (long long)SIZE * blockIdx.x + place;

  __device__ __forceinline__ explicit Tile(const Arguments& arguments) : a(arguments) {}

  __device__ __forceinline__ int chunks() const { return (int)((shard + chunk - 1) / chunk); }
  __device__ __forceinline__ long long end(int owner) const { return min(vectors, (owner + 1) * shard); }
  // Only other ranks send, so each receiver counts the senders from the rank after it.
  __device__ __forceinline__ uint4* slot(int receiver, int sender, int c) const {
    int turn = sender - receiver - 1 + (sender > receiver ? 0 : a.ranks);
    return a.staging[receiver] + ((c % SLOTS) * (a.ranks - 1) + turn) * a.stride + at;
  }
  // Whether a batch whose first vector is this thread's i is all there, and in whole vectors.
  __device__ __forceinline__ bool full(long long i, long long last) const {
    long long behind = i - place + SIZE;
    return behind <= last && behind * V::SIZE <= a.count;
  }

  // Looks at what this thread sends of a chunk, and at what it adds to it.
  __device__ __forceinline__ void inspect_all(int c) const {
    for (int owner = 0; owner < a.ranks; owner++) {
      long long i = owner * shard + c * chunk + at;
      for (int batch = 0; batch < a.batches; batch++, i += stride) inspect<F>(a, i, end(owner), BATCH, WORKERS);
    }
  }

  // The warps begin with different ranks, so that a block writes to all others at once: that uses the links more evenly.
  __device__ __forceinline__ void contribute(int c) const {
    bool aligned = a.aligned >> a.rank & 1;
    int first = threadIdx.x / 32 % (a.ranks - 1);
    for (long long done = 0; done < chunk; done += stride) {
      for (int k = 1; k < a.ranks; k++) {
        int owner = after(a, k + first < a.ranks ? k + first : k + first - (a.ranks - 1));
        long long i = owner * shard + c * chunk + at + done, last = end(owner);
        if (aligned && full(i, last)) {
          contribute<true>(i, last, slot(owner, a.rank, c) + done);
        } else {
          contribute<false>(i, last, slot(owner, a.rank, c) + done);
        }
      }
    }
  }

  template <bool FULL> __device__ __forceinline__ void contribute(long long i, long long last, uint4* to) const {
    uint4 v[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL) {
        v[u] = V::read_together(a.buffers[a.rank], i + u * WORKERS);
      } else if (i + u * WORKERS < last) {
        v[u] = V::read(a.buffers[a.rank], i + u * WORKERS, a.count, a.aligned >> a.rank & 1);
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL || i + u * WORKERS < last) store(to + u * WORKERS, v[u]);
    }
  }

  __device__ __forceinline__ void reduce(int c) const {
    bool aligned = a.aligned == (1 << a.ranks) - 1;
    long long i = a.rank * shard + c * chunk + at, last = end(a.rank);
    long long in = ((long long)(c % SLOTS) * (a.ranks - 1)) * a.stride + at;
    for (int batch = 0; batch < a.batches; batch++, i += stride, in += stride) {
      if (aligned && full(i, last)) {
        reduce<true>(i, last, a.staging[a.rank] + in);
      } else {
        reduce<false>(i, last, a.staging[a.rank] + in);
      }
    }
  }

  // In rank order; `from` is the next rank's contribution, and those of lower ranks come after the highest one's.
  template <bool FULL> __device__ __forceinline__ void add_up(long long i, long long last, const uint4* from, uint4* result) const {
    V sum[BATCH];
    for (int rank = 0; rank < a.ranks; rank++) {
      int turn = rank - a.rank - 1 + (rank > a.rank ? 0 : a.ranks);
      uint4 v[BATCH];
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        if (FULL && V::NARROWED) {
          v[u] = rank == a.rank ? V::read_together(a.buffers[rank], i + u * WORKERS) : receive(from + turn * a.stride + u * WORKERS);
        } else if (FULL) {
          v[u] = receive((rank == a.rank ? static_cast<const uint4*>(a.buffers[rank]) + i : from + turn * a.stride) + u * WORKERS);
        } else if (i + u * WORKERS < last) {
          v[u] = rank == a.rank ? V::read(a.buffers[rank], i + u * WORKERS, a.count, a.aligned >> rank & 1)
                                : receive(from + turn * a.stride + u * WORKERS);
        }
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        if (rank == 0) {
          sum[u].first(v[u]);
        } else {
          sum[u].next(v[u], a.op);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) result[u] = sum[u].result(a.op, a.ranks);
  }

  template <bool FULL> __device__ __forceinline__ void reduce(long long i, long long last, const uint4* from) const {
    uint4 result[BATCH];
    add_up<FULL>(i, last, from, result);
    for (int k = 0; k < a.ranks; k++) {
      int rank = after(a, k);
#pragma unroll
      for (int u = 0; u < BATCH; u++) { // each to another rank, for the same reason
        if (FULL) {
          store(static_cast<uint4*>(a.buffers[rank]) + i + u * WORKERS, result[u]);
        } else if (i + u * WORKERS < last) {
          V::write(a.buffers[rank], i + u * WORKERS, a.count, a.aligned >> rank & 1, result[u]);
        }
        if (++rank == a.ranks) rank = 0;
      }
    }
  }

  // Where a rank's results for another lie: behind all contributions.
  __device__ __forceinline__ uint4* result_slot(int receiver, int sender, int c) const {
    return slot(receiver, sender, c) + SLOTS * (a.ranks - 1) * a.stride;
  }

  // As reduce, but others get the results in their staging.
  __device__ __forceinline__ void reduce_to_staging(int c) const {
    bool aligned = a.aligned >> a.rank & 1;
    long long i = a.rank * shard + c * chunk + at, last = end(a.rank), done = 0;
    const uint4* from = a.staging[a.rank] + ((long long)(c % SLOTS) * (a.ranks - 1)) * a.stride + at;
    for (int batch = 0; batch < a.batches; batch++, i += stride, done += stride) {
      if (aligned && full(i, last)) {
        reduce_to_staging<true>(i, last, from + done, c, done);
      } else {
        reduce_to_staging<false>(i, last, from + done, c, done);
      }
    }
  }

  template <bool FULL>
  __device__ __forceinline__ void reduce_to_staging(long long i, long long last, const uint4* from, int c, long long done) const {
    uint4 result[BATCH];
    add_up<FULL>(i, last, from, result);
    for (int k = 1; k < a.ranks; k++) {
      uint4* to = result_slot(after(a, k), a.rank, c) + done;
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        if (FULL || i + u * WORKERS < last) store(to + u * WORKERS, result[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL) {
        V::write_together(a.buffers[a.rank], i + u * WORKERS, result[u]);
      } else if (i + u * WORKERS < last) {
        V::write(a.buffers[a.rank], i + u * WORKERS, a.count, a.aligned >> a.rank & 1, result[u]);
      }
    }
  }

  // Takes an owner's results from this rank's staging into its buffer.
  __device__ __forceinline__ void collect(int owner, int c) const {
    bool aligned = a.aligned >> a.rank & 1;
    long long i = owner * shard + c * chunk + at, last = end(owner);
    const uint4* from = result_slot(a.rank, owner, c);
    for (int batch = 0; batch < a.batches; batch++, i += stride, from += stride) {
      if (aligned && full(i, last)) {
        collect<true>(i, last, from);
      } else {
        collect<false>(i, last, from);
      }
    }
  }

  template <bool FULL> __device__ __forceinline__ void collect(long long i, long long last, const uint4* from) const {
    uint4 v[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL || i + u * WORKERS < last) v[u] = receive(from + u * WORKERS);
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL) {
        V::write_together(a.buffers[a.rank], i + u * WORKERS, v[u]);
      } else if (i + u * WORKERS < last) {
        V::write(a.buffers[a.rank], i + u * WORKERS, a.count, a.aligned >> a.rank & 1, v[u]);
      }
    }
  }
};

// A chunk is one tile for each block, and each block deals with the same block of the other ranks alone. In each step the
// workers send a chunk's tiles and then reduce those of the chunk before; meanwhile the last warp raises the flags, which
// has to wait for the links, and looks for the others'. So a rank that has sent chunk c + 1 has reduced chunk c - 1, a rank
// that has its flag may send chunk c + 2, and four slots of staging are enough: slot (c + 2) % 4 was chunk c - 2's.
constexpr int SENT = 1, RECEIVED = 3; // barriers, each for odd and even chunks

// The last warp's part: it raises the flag of each chunk when the workers have sent it, and lets them know when all others'
// flags are there. Its first flags come with the comparison of the calls.
__device__ __forceinline__ void carry_messages(Call& call, int chunks, volatile int* hopeless_at) {
  const Arguments& a = call.a;
  int peer = threadIdx.x - WORKERS;
  bool there = peer < a.ranks && peer != a.rank;
  for (int c = 0; c < chunks && !call.failed; c++) {
    barrier_wait(SENT + (c & 1));
    if (there) {
      unsigned long long flag = call.number << TAG_BITS | c;
      tell_after_all(&a.mailboxes[peer]->flags[0][blockIdx.x][a.rank], flag);
      while (look(&call.own->flags[0][blockIdx.x][peer]) < flag && !call.hopeless()) {
      }
      while (c == 0 && look(&call.own->headers[call.number & 1][peer]) != call.header && !call.hopeless()) {
      }
      fence();
    }
    call.failed = __any_sync(~0u, call.failed);
    if (call.failed) *hopeless_at = c;
    barrier_come(RECEIVED + (c & 1));
  }
}

// Nobody leaves before all others have come as far: neither this rank's buffer nor its staging is written any more.
template <bool CHECK_FINITE> __device__ __forceinline__ void leave_together(Call& call) {
  const Arguments& a = call.a;
  if (!__syncthreads_or(call.failed)) {
    if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
      unsigned long long flag = call.number << TAG_BITS;
      tell_after_all(&a.mailboxes[threadIdx.x]->flags[1][blockIdx.x][a.rank], flag);
      while (look(&call.own->flags[1][blockIdx.x][threadIdx.x]) < flag && !call.hopeless()) {
      }
      fence();
    }
  }
  call.finish<CHECK_FINITE>();
}

// In staged, the flag of chunk c also tells that the results of chunk c - 2 have been sent; so two flags more are raised at the
// end, and a chunk's results are collected three steps after it was sent. Who writes the results of chunk c + 4 has the flags of
// that chunk, whose senders have collected chunk c: four slots are enough here, too.
template <class F, int FAMILY, bool CHECK_FINITE, int BATCH, bool STAGED> __device__ __forceinline__ void in_chunks(const Arguments& a) {
  __shared__ volatile int hopeless_at; // the first chunk that will not come
  Call call(a);
  if (__syncthreads_or(call.broken)) return; // all or none: another block may just be setting it
  if (threadIdx.x == 0) hopeless_at = INT_MAX;
  __syncthreads();
  Tile<F, FAMILY, BATCH> tile(a);
  int chunks = tile.chunks(), flags = STAGED ? chunks + 2 : chunks;
  if (threadIdx.x >= WORKERS) {
    carry_messages(call, flags, &hopeless_at);
  } else {
    for (int c = 0; c <= flags; c++) {
      if (c < chunks) {
        if constexpr (CHECK_FINITE) tile.inspect_all(c);
        tile.contribute(c);
      }
      if (c < flags) barrier_come(SENT + (c & 1));
      if (c > 0) {
        barrier_wait(RECEIVED + (c - 1 & 1));
        if (hopeless_at < c) break; // the same for all workers: a later chunk's is for the next step
        if constexpr (STAGED) {
          if (c - 1 < chunks) tile.reduce_to_staging(c - 1);
          if (c >= 3) {
            for (int k = 1; k < a.ranks; k++) tile.collect(after(a, k), c - 3);
          }
        } else {
          tile.reduce(c - 1);
        }
      }
    }
    call.failed = hopeless_at < flags;
  }
  leave_together<CHECK_FINITE>(call);
}

template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void stream(const Arguments& a) {
  in_chunks<F, FAMILY, CHECK_FINITE, STREAM_BATCH, false>(a);
}
template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void stream_few_ctas(const Arguments& a) {
  in_chunks<F, FAMILY, CHECK_FINITE, FEW_CTAS_BATCH_OF<F>, false>(a);
}
template <class F, int FAMILY, bool CHECK_FINITE> __device__ __forceinline__ void staged(const Arguments& a) {
  in_chunks<F, FAMILY, CHECK_FINITE, FEW_CTAS_BATCH_OF<F>, true>(a);
}

#define KERNEL(way, threads, blocks, type, format, family, check_finite) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) way##_##type##_##family(const __grid_constant__ Arguments a) { \
    way<format, family, check_finite>(a); \
  }
// Every type and operation goes one way; PeerAlgorithm.java knows what has others, too.
#define ONE_WAY(type, format, family, check_finite) KERNEL(two_shot, 256, 3, type, format, family, check_finite)
#define ALL_WAYS(type, format, check_finite) \
  KERNEL(one_shot, 256, 3, type, format, ADDING, check_finite) \
  KERNEL(two_shot, 256, 3, type, format, ADDING, check_finite) \
  KERNEL(two_shot_unrolled, 256, 2, type, format, ADDING, check_finite) \
  KERNEL(stream, 512, 2, type, format, ADDING, check_finite) \
  KERNEL(stream_few_ctas, 512, 1, type, format, ADDING, check_finite)
#define NARROWED(type, format, check_finite) \
  KERNEL(one_shot, 256, 3, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(two_shot, 256, 3, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(two_shot_unrolled, 256, 2, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(staged, 512, 1, type, Narrowed<format>, ADDING, check_finite)
#define BROADCAST(type, format) \
  extern "C" __global__ void __launch_bounds__(256, 3) broadcast_##type(const __grid_constant__ Arguments a) { \
    broadcast<format>(a); \
  }
