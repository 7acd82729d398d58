// one_shot, two_shot, two_shot_unrolled and broadcast: what goes in lines.
//
// A line has 128 bytes, 112 of data and 16 that say which call it is of, so data needs no fence and no flag of its own. It is
// written by eight threads of a warp with one instruction and read in the same way, which NVLink carries as a whole (NCCL's
// protocol LL128 rests on the same).

#pragma once

#include "vectors.cuh"

constexpr int LINE = 8; // vectors of 16 bytes in a line, the last of which says which call it is of

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

// Uses one_shot's staging. The root sends everything to every other rank or, if there are several parts, a part to each, which
// forwards it. The root begins when all others have come; so it is not ahead of them, and neither is a rank that has got what
// the others sent.
template <class F> __device__ __forceinline__ void broadcast(const Arguments& a) {
  using V = Vector<F, ADDING>;
  Call call(a);
  if (call.broken) return;
  Lane lane;
  void* buffer = a.buffers[a.rank];
  bool aligned = a.aligned >> a.rank & 1;
  int parts = a.batches; // 1, or one for each receiver
  long long vectors = (a.count + V::SIZE - 1) / V::SIZE, part = (vectors + parts - 1) / parts;
  long long rounds = (part + Lane::VECTORS - 1) / Lane::VECTORS;
  long long parity = (call.number & 1) * a.ranks * a.stride + lane.lane;
  // This lane's vector of a round of an owner's part, or -1.
  auto index = [&](int owner, long long round) {
    long long at = round * Lane::VECTORS + lane.offset;
    long long i = (parts == 1 ? 0 : (owner - a.root - 1 + a.ranks) % a.ranks * part) + at;
    return lane.data && at < part && i < vectors ? i : -1;
  };
  auto send = [&](int to, long long round, const uint4& v) {
    send_line(a.staging[to] + parity + a.rank * a.stride + round * 32, v);
  };
  auto receive = [&](int from, int owner, long long round, uint4& v) {
    if (!await(call, lane, a.staging[a.rank] + parity + from * a.stride + round * 32, v)) return false;
    long long i = index(owner, round);
    if (i >= 0) V::write(buffer, i, a.count, aligned, v);
    return true;
  };
  if (a.rank == a.root) {
    if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
      while (look(&call.own->headers[call.number & 1][threadIdx.x]) != call.header && !call.hopeless()) {
      }
    }
    call.failed = __syncthreads_or(call.failed);
  }
  for (long long round = lane.warp; round < rounds && !call.failed; round += lane.warps) {
    uint4 v;
    if (a.rank == a.root) {
      for (int k = 1; k < a.ranks; k++) {
        int owner = after(a, k);
        if (k == 1 || parts > 1) {
          long long i = index(owner, round);
          v = lane.tagged(i >= 0 ? V::read(buffer, i, a.count, aligned) : make_uint4(0, 0, 0, 0), call.header);
        }
        send(owner, round, v);
      }
    } else if (receive(a.root, a.rank, round, v) && parts > 1) {
      for (int k = 1; k < a.ranks; k++) {
        if (after(a, k) != a.root) send(after(a, k), round, v);
      }
    }
  }
  for (int k = 1; k < a.ranks && parts > 1 && a.rank != a.root; k++) {
    int owner = after(a, k);
    if (owner == a.root) continue;
    for (long long round = lane.warp; round < rounds && !call.failed; round += lane.warps) {
      uint4 v;
      receive(owner, owner, round, v);
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
