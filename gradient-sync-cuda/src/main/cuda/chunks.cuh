// stream, stream_few_ctas, staged, stream_blocks and stream_parts: what goes in chunks.

#pragma once

#include "barriers.cuh"
#include "vectors.cuh"

constexpr int SLOTS = 4;     // of staging
constexpr int WORKERS = 480; // threads of a block; the last warp carries messages

// Vectors that a worker has in flight, for which two blocks of stream share an SM's registers. In stream_few_ctas and staged
// half as many of types of 16 bits, which are added up in twice the registers.
constexpr int STREAM_BATCH = 2;
constexpr int FEW_CTAS_BATCH = 8;
template <class F> constexpr int FEW_CTAS_BATCH_OF = sizeof(typename F::Stored) == 2 ? FEW_CTAS_BATCH / 2 : FEW_CTAS_BATCH;

// Named barriers, in which some warps wait and others only say that they have come.
__device__ __forceinline__ void barrier_wait(int barrier) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(WORKERS + 32) : "memory");
}
__device__ __forceinline__ void barrier_come(int barrier) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(WORKERS + 32) : "memory");
}

// One of the buffers that are reduced as one. Each begins with a batch of its own, so that all elements of a batch lie in one.
// PeerParts.java knows this layout.
struct Part {
  void* buffers[MAX_RANKS];
  long long count; // elements
  int batch;       // the number of its first
  int aligned;     // as in Arguments
};

template <bool FIRST, class A, class B> struct Either { using Type = B; };
template <class A, class B> struct Either<true, A, B> { using Type = A; };

// A block's part of a chunk: one batch of vectors after the other, which lie between those of the other blocks. A worker
// has BATCH vectors in flight. With BLOCKS each owner has a block of `count` elements, which lies in `buffers`, of none if it is
// 0; otherwise a shard of one buffer. With PARTS that are several, see Part.
template <class F, int FAMILY, int BATCH, bool BLOCKS, bool PARTS> struct Tile {
  using V = Vector<F, FAMILY>;
  using Elements = typename Either<PARTS, Part, Arguments>::Type; // has `buffers`, `count` and `aligned`
  static constexpr int SIZE = WORKERS * BATCH; // of a batch
  static constexpr int WHOLE = PARTS ? SIZE : 1; // what shards are multiples of
  const Arguments& a;
  long long vectors = (a.count + V::SIZE - 1) / V::SIZE;
  long long shard = BLOCKS ? vectors : (vectors + a.ranks * WHOLE - 1) / (a.ranks * WHOLE) * WHOLE;
  long long stride = (long long)SIZE * gridDim.x; // from one batch of a block to its next
  long long chunk = stride * a.batches;
  int place = (threadIdx.x & ~31) + V::place(threadIdx.x & 31); // of this thread's first vector in a batch
  long long at = (long long)SIZE * blockIdx.x + place;

  __device__ __forceinline__ explicit Tile(const Arguments& arguments) : a(arguments) {}

  __device__ __forceinline__ int chunks() const { return (int)((shard + chunk - 1) / chunk); }
  __device__ __forceinline__ long long begin(int owner) const { return BLOCKS ? 0 : owner * shard; }
  __device__ __forceinline__ long long end(int owner) const { return BLOCKS ? vectors : min(vectors, (owner + 1) * shard); }
  // Only other ranks send, so each receiver counts the senders from the rank after it.
  __device__ __forceinline__ uint4* slot(int receiver, int sender, int c) const {
    int turn = sender - receiver - 1 + (sender > receiver ? 0 : a.ranks);
    return a.staging[receiver] + ((c % SLOTS) * (a.ranks - 1) + turn) * a.stride + at;
  }
  // Where a batch's elements lie, whose first vector is this thread's i. Makes i and last the vectors there.
  __device__ __forceinline__ const Elements& find(long long& i, long long& last) const {
    if constexpr (PARTS) {
      const Part* parts = reinterpret_cast<const Part*>(a.local);
      int batch = (int)((i - place) / SIZE), low = 0, high = i < last ? a.root : 1;
      while (high - low > 1) {
        int middle = (low + high) / 2;
        if (parts[middle].batch <= batch) {
          low = middle;
        } else {
          high = middle;
        }
      }
      last = i < last ? (parts[low].count + V::SIZE - 1) / V::SIZE : 0;
      i -= (long long)parts[low].batch * SIZE;
      return parts[low];
    } else {
      return a;
    }
  }
  // Whether a batch whose first vector is this thread's i is all there, and in whole vectors.
  __device__ __forceinline__ bool full(const Elements& e, long long i, long long last) const {
    long long behind = i - place + SIZE;
    return behind <= last && behind * V::SIZE <= e.count;
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
    int first = threadIdx.x / 32 % (a.ranks - 1);
    for (long long done = 0; done < chunk; done += stride) {
      for (int k = 1; k < a.ranks; k++) {
        int owner = after(a, k + first < a.ranks ? k + first : k + first - (a.ranks - 1));
        int from = BLOCKS ? owner : a.rank;
        if (BLOCKS && a.buffers[from] == nullptr) continue;
        long long i = begin(owner) + c * chunk + at + done, last = end(owner);
        const Elements& e = find(i, last);
        if ((e.aligned >> from & 1) && full(e, i, last)) {
          contribute<true>(e, from, i, last, slot(owner, a.rank, c) + done);
        } else {
          contribute<false>(e, from, i, last, slot(owner, a.rank, c) + done);
        }
      }
    }
  }

  template <bool FULL>
  __device__ __forceinline__ void contribute(const Elements& e, int from, long long i, long long last, uint4* to) const {
    uint4 v[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL) {
        v[u] = V::read_together(e.buffers[from], i + u * WORKERS);
      } else if (i + u * WORKERS < last) {
        v[u] = V::read(e.buffers[from], i + u * WORKERS, e.count, e.aligned >> from & 1);
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL || i + u * WORKERS < last) store(to + u * WORKERS, v[u]);
    }
  }

  __device__ __forceinline__ void reduce(int c) const {
    long long first = a.rank * shard + c * chunk + at;
    long long in = ((long long)(c % SLOTS) * (a.ranks - 1)) * a.stride + at;
    for (int batch = 0; batch < a.batches; batch++, first += stride, in += stride) {
      long long i = first, last = end(a.rank);
      const Elements& e = find(i, last);
      if (e.aligned == (1 << a.ranks) - 1 && full(e, i, last)) {
        reduce<true>(e, i, last, a.staging[a.rank] + in);
      } else {
        reduce<false>(e, i, last, a.staging[a.rank] + in);
      }
    }
  }

  // In rank order; `from` is the next rank's contribution, and those of lower ranks come after the highest one's.
  template <bool FULL>
  __device__ __forceinline__ void add_up(const Elements& e, long long i, long long last, const uint4* from, uint4* result) const {
    V sum[BATCH];
    for (int rank = 0; rank < a.ranks; rank++) {
      int turn = rank - a.rank - 1 + (rank > a.rank ? 0 : a.ranks);
      uint4 v[BATCH];
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        if (FULL && V::NARROWED) {
          v[u] = rank == a.rank ? V::read_together(e.buffers[rank], i + u * WORKERS) : receive(from + turn * a.stride + u * WORKERS);
        } else if (FULL) {
          v[u] = receive((rank == a.rank ? static_cast<const uint4*>(e.buffers[rank]) + i : from + turn * a.stride) + u * WORKERS);
        } else if (i + u * WORKERS < last) {
          v[u] = rank == a.rank ? V::read(e.buffers[rank], i + u * WORKERS, e.count, e.aligned >> rank & 1)
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

  template <bool FULL>
  __device__ __forceinline__ void reduce(const Elements& e, long long i, long long last, const uint4* from) const {
    uint4 result[BATCH];
    add_up<FULL>(e, i, last, from, result);
    for (int k = 0; k < a.ranks; k++) {
      int rank = after(a, k);
#pragma unroll
      for (int u = 0; u < BATCH; u++) { // each to another rank, for the same reason
        if (FULL) {
          store(static_cast<uint4*>(e.buffers[rank]) + i + u * WORKERS, result[u]);
        } else if (i + u * WORKERS < last) {
          V::write(e.buffers[rank], i + u * WORKERS, e.count, e.aligned >> rank & 1, result[u]);
        }
        if (++rank == a.ranks) rank = 0;
      }
    }
  }

  // As reduce, but only this rank gets the results, if it is an owner.
  __device__ __forceinline__ void reduce_block(int c) const {
    if (a.local == nullptr) return;
    bool aligned = (a.aligned >> a.rank & 1) && (reinterpret_cast<long long>(a.local) & 15) == 0;
    long long i = c * chunk + at;
    const uint4* from = a.staging[a.rank] + ((long long)(c % SLOTS) * (a.ranks - 1)) * a.stride + at;
    for (int batch = 0; batch < a.batches; batch++, i += stride, from += stride) {
      if (aligned && full(a, i, vectors)) {
        reduce_block<true>(i, from);
      } else {
        reduce_block<false>(i, from);
      }
    }
  }

  template <bool FULL> __device__ __forceinline__ void reduce_block(long long i, const uint4* from) const {
    uint4 result[BATCH];
    add_up<FULL>(a, i, vectors, from, result);
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (FULL) {
        V::write_together(a.local, i + u * WORKERS, result[u]);
      } else if (i + u * WORKERS < vectors) {
        V::write(a.local, i + u * WORKERS, a.count, (reinterpret_cast<long long>(a.local) & 15) == 0, result[u]);
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
      if (aligned && full(a, i, last)) {
        reduce_to_staging<true>(i, last, from + done, c, done);
      } else {
        reduce_to_staging<false>(i, last, from + done, c, done);
      }
    }
  }

  template <bool FULL>
  __device__ __forceinline__ void reduce_to_staging(long long i, long long last, const uint4* from, int c, long long done) const {
    uint4 result[BATCH];
    add_up<FULL>(a, i, last, from, result);
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
      if (aligned && full(a, i, last)) {
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
      while (look_before_all(&call.own->flags[0][blockIdx.x][peer]) < flag && !call.hopeless()) {
      }
      while (c == 0 && look_before_all(&call.own->headers[call.number & 1][peer]) != call.header && !call.hopeless()) {
      }
    }
    call.failed = __any_sync(~0u, call.failed);
    if (call.failed) *hopeless_at = c;
    barrier_come(RECEIVED + (c & 1));
  }
}

// In staged, the flag of chunk c also tells that the results of chunk c - 2 have been sent; so two flags more are raised at the
// end, and a chunk's results are collected three steps after it was sent. Who writes the results of chunk c + 4 has the flags of
// that chunk, whose senders have collected chunk c: four slots are enough here, too.
template <class F, int FAMILY, bool CHECK_FINITE, int BATCH, bool STAGED, bool BLOCKS = false, bool PARTS = false>
__device__ __forceinline__ void in_chunks(const Arguments& a) {
  __shared__ volatile int hopeless_at; // the first chunk that will not come
  Call call(a);
  if (__syncthreads_or(call.broken)) return; // all or none: another block may just be setting it
  if (threadIdx.x == 0) hopeless_at = INT_MAX;
  __syncthreads();
  Tile<F, FAMILY, BATCH, BLOCKS, PARTS> tile(a);
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
        } else if constexpr (BLOCKS) {
          tile.reduce_block(c - 1);
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
