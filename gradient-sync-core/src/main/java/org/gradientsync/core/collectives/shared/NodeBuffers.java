package org.gradientsync.core.collectives.shared;

import java.util.HashMap;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;

/**
 * The other ranks' buffers of a node, mapped into this process for reading. In each call, the ranks
 * announce where their buffers lie: the id of the memory and the offset in it.
 */
public final class NodeBuffers {
  private final SharedMemoryRendezvous rendezvous;
  private final HostDevice device;
  private final NodeMemory node;
  private final int rank;
  private final Map<Place, Mapping> mappings = new HashMap<>();

  /** The place of a rank's memory. */
  private record Place(int rank, long id) {}

  /** Another rank's memory, and the number of sets that refer to it. */
  private static final class Mapping {
    private final HostBuffer memory;
    private int users;

    Mapping(HostBuffer memory) {
      this.memory = memory;
    }
  }

  /** All ranks' buffers of one call, valid while they stay in place. */
  public final class Mapped implements AutoCloseable {
    private final long[] ids;
    private final long[] offsets;
    private final HostBuffer[] buffers;

    private Mapped(int size) {
      ids = new long[size];
      offsets = new long[size];
      buffers = new HostBuffer[size];
    }

    /** A rank's buffer. */
    public HostBuffer of(int peer) {
      return buffers[peer];
    }

    /** All ranks' buffers; null where a rank has announced none. */
    HostBuffer[] all() {
      return buffers;
    }

    /** Whether the ranks have announced the same places in the current call. */
    public boolean isValid() {
      boolean valid = true;
      for (int peer = 0; peer < ids.length; peer++) {
        valid &= CallRecord.memoryId(rendezvous.call(peer)) == ids[peer];
        valid &= CallRecord.memoryOffset(rendezvous.call(peer)) == offsets[peer];
      }
      return valid;
    }

    @Override
    public void close() {
      for (int peer = 0; peer < ids.length; peer++) {
        Place place = new Place(peer, ids[peer]);
        Mapping mapping = mappings.get(place);
        if (mapping != null && --mapping.users == 0) {
          mappings.remove(place);
          mapping.memory.close();
        }
      }
    }
  }

  public NodeBuffers(
      SharedMemoryRendezvous rendezvous, HostDevice device, NodeMemory node, int rank) {
    this.rendezvous = rendezvous;
    this.device = device;
    this.node = node;
    this.rank = rank;
  }

  /**
   * Maps the buffers that the ranks have announced in the current call.
   *
   * @param own this rank's buffer, or null if it announced none
   * @param count the number of elements of each rank's buffer
   */
  public Mapped map(HostBuffer own, DataType type, long count, int size) {
    Mapped mapped = new Mapped(size);
    for (int peer = 0; peer < size; peer++) {
      long id = CallRecord.memoryId(rendezvous.call(peer));
      mapped.ids[peer] = id;
      mapped.offsets[peer] = CallRecord.memoryOffset(rendezvous.call(peer));
      if (peer == rank) {
        mapped.buffers[peer] = own;
      } else if (id >= 0) {
        mapped.buffers[peer] =
            (HostBuffer)
                mapping(type, peer, id).memory.reinterpret(type).slice(mapped.offsets[peer], count);
      }
    }
    return mapped;
  }

  private Mapping mapping(DataType type, int peer, long id) {
    Mapping mapping =
        mappings.computeIfAbsent(
            new Place(peer, id), place -> new Mapping(device.map(type, node.owner(peer), id)));
    mapping.users++;
    return mapping;
  }
}
