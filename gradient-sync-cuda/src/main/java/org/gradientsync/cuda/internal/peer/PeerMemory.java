package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DeviceException;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.Agreement;
import org.gradientsync.core.collectives.GroupCommunicator;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/**
 * Maps the other ranks' GPU memory. For ranks in other processes it imports the handles of their
 * allocations. For ranks in this process, whose handles CUDA refuses to import, it uses their
 * addresses, which are valid here once peer access is enabled.
 */
final class PeerMemory implements AutoCloseable {
  /** Identifies this process, because process ids may repeat across containers. */
  private static final long PROCESS = new SecureRandom().nextLong();

  /** Words that each rank sends: process, kind of GPU, and two for the GPU's PCI address. */
  private static final int FACTS = 4;

  /**
   * Words of an {@link #offer}: valid, process, base of the allocation, its id, offset, and the
   * handle.
   */
  private static final int OFFER = 5 + CudaApi.HANDLE_BYTES / Long.BYTES;

  private final Gpu gpu;
  private final GroupCommunicator communicator;
  private final long process;
  private final PeerSharing sharing;
  private final Map<Place, Mapping> mappings = new HashMap<>();

  private record Place(int rank, long process, long allocation) {}

  private static final class Mapping {
    private final long address;
    private final boolean imported;
    private int users;

    Mapping(long address, boolean imported) {
      this.address = address;
      this.imported = imported;
    }
  }

  /** A rank's memory, and its address here. */
  record Mapped(int rank, long process, long allocation, long address) {}

  private PeerMemory(Gpu gpu, GroupCommunicator communicator, long process, PeerSharing sharing) {
    this.gpu = gpu;
    this.communicator = communicator;
    this.process = process;
    this.sharing = sharing;
  }

  /**
   * Checks that each rank can reach every other rank's GPU. Collective.
   *
   * @param sharingAllowed whether ranks of one process may share a GPU, see {@link PeerSharing}
   * @throws UnavailableException on all ranks, with the same reason, if one cannot
   */
  static PeerMemory open(RankGroup group, Gpu gpu, boolean sharingAllowed) {
    return open(group, gpu, sharingAllowed, PROCESS);
  }

  /** As {@link #open(RankGroup, Gpu, boolean)}, with a given process number. */
  static PeerMemory open(RankGroup group, Gpu gpu, boolean sharingAllowed, long process) {
    GroupCommunicator communicator = new GroupCommunicator(group);
    byte[] pci = Arrays.copyOf(gpu.pciAddress().getBytes(StandardCharsets.UTF_8), 16);
    LongBuffer own = LongBuffer.allocate(FACTS);
    own.put(process);
    own.put(1000L * gpu.sms() + gpu.capability());
    own.put(ByteBuffer.wrap(pci).asLongBuffer());
    long[] all = new long[FACTS * group.size()];
    communicator.allGather(own.flip(), LongBuffer.wrap(all));
    String reason = "";
    for (int peer = 0; peer < group.size() && reason.isEmpty(); peer++) {
      if (peer != group.rank()) {
        reason =
            obstacle(
                gpu,
                sharingAllowed,
                Arrays.copyOfRange(all, FACTS * peer, FACTS * peer + FACTS),
                own.array());
        reason = reason.isEmpty() ? "" : reason + ": ranks " + group.rank() + " and " + peer;
      }
    }
    Agreement.requireAll(communicator, reason);
    List<List<Long>> gpus = new ArrayList<>();
    for (int rank = 0; rank < group.size(); rank++) {
      gpus.add(Arrays.stream(all, FACTS * rank, FACTS * rank + FACTS).boxed().toList());
    }
    return new PeerMemory(gpu, communicator, process, new PeerSharing(gpus, group.rank()));
  }

  private static String obstacle(Gpu gpu, boolean sharingAllowed, long[] theirs, long[] own) {
    CudaApi api = gpu.api();
    boolean sameProcess = theirs[0] == own[0];
    if (theirs[1] != own[1]) {
      return "their GPUs are of different kinds"; // so they would divide the work differently
    }
    try {
      if (theirs[2] == own[2] && theirs[3] == own[3]) {
        return PeerSharing.obstacle(sharingAllowed, sameProcess);
      }
      byte[] pci = new byte[16];
      ByteBuffer.wrap(pci).putLong(theirs[2]).putLong(theirs[3]);
      int ordinal = ordinalOf(api, new String(pci, StandardCharsets.UTF_8).trim());
      if (ordinal < 0) {
        return "this process is not shown the other rank's GPU (CUDA_VISIBLE_DEVICES)";
      }
      if (!api.canAccessPeer(gpu.ordinal(), ordinal)) {
        return "their GPUs have no peer access";
      }
      if (!api.hasNativeLink(gpu.ordinal(), ordinal)) {
        return "their GPUs are not joined by NVLink";
      }
      if (sameProcess) {
        gpu.makeCurrent();
        api.enablePeerAccess(api.retainContext(ordinal));
      }
      return "";
    } catch (DeviceException e) {
      return e.getMessage();
    }
  }

  private static int ordinalOf(CudaApi api, String pciAddress) {
    for (int ordinal = 0; ordinal < api.deviceCount(); ordinal++) {
      if (api.pciAddress(ordinal).equals(pciAddress)) {
        return ordinal;
      }
    }
    return -1;
  }

  GroupCommunicator communicator() {
    return communicator;
  }

  /** Which ranks share a GPU. */
  PeerSharing sharing() {
    return sharing;
  }

  /**
   * Offers memory of this rank to the others, and maps theirs. Collective.
   *
   * @param address an address in this GPU's memory
   * @return each rank's memory, including this rank's; null on all ranks if a rank cannot map
   *     another's
   */
  Mapped[] share(long address) {
    long[] own = offer(address);
    int size = communicator.size();
    long[] all = new long[OFFER * size];
    communicator.allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    Mapped[] mapped = new Mapped[size];
    boolean done = own[0] == 1;
    for (int peer = 0; peer < size; peer++) {
      long[] theirs = Arrays.copyOfRange(all, OFFER * peer, OFFER * (peer + 1));
      done &= theirs[0] == 1;
      if (peer == communicator.rank()) {
        mapped[peer] = new Mapped(peer, process, theirs[3], address);
      } else if (done) {
        mapped[peer] = map(peer, theirs);
        done = mapped[peer] != null;
      }
    }
    long[] verdict = {done ? 1 : 0};
    communicator.allReduce(LongBuffer.wrap(verdict), ReduceOp.MIN);
    if (verdict[0] == 1) {
      return mapped;
    }
    unmap(mapped);
    return null;
  }

  /** Releases what {@link #share} mapped. Skips null elements. */
  void unmap(Mapped[] mapped) {
    List<Mapping> unused = new ArrayList<>();
    for (Mapped m : mapped) {
      Place place = m == null ? null : new Place(m.rank, m.process, m.allocation);
      Mapping mapping = mappings.get(place);
      if (mapping != null && --mapping.users == 0) {
        mappings.remove(place);
        unused.add(mapping);
      }
    }
    close(unused);
  }

  private void close(Collection<Mapping> unused) {
    List<AutoCloseable> all = new ArrayList<>();
    for (Mapping mapping : unused) {
      if (mapping.imported) {
        all.add(gpu::makeCurrent);
        all.add(() -> gpu.api().closeImport(mapping.address));
      }
    }
    Resources.closeAll(all);
  }

  private long[] offer(long address) {
    long[] offer = new long[OFFER];
    try {
      gpu.makeCurrent();
      long base = gpu.api().allocationOf(address);
      byte[] handle = gpu.api().exportMemory(base);
      offer[0] = 1;
      offer[1] = process;
      offer[2] = base;
      offer[3] = gpu.api().allocationId(base);
      offer[4] = address - base;
      ByteBuffer.wrap(handle).asLongBuffer().get(offer, 5, handle.length / Long.BYTES);
    } catch (DeviceException e) {
      offer[0] = 0; // not from cuMemAlloc, so it cannot be exported
    }
    return offer;
  }

  private Mapped map(int peer, long[] theirs) {
    Place place = new Place(peer, theirs[1], theirs[3]);
    Mapping mapping = mappings.get(place);
    try {
      if (mapping == null) {
        boolean here = theirs[1] == process;
        ByteBuffer handle = ByteBuffer.allocate(CudaApi.HANDLE_BYTES);
        handle.asLongBuffer().put(theirs, 5, CudaApi.HANDLE_BYTES / Long.BYTES);
        gpu.makeCurrent();
        mapping = new Mapping(here ? theirs[2] : gpu.api().importMemory(handle.array()), !here);
        mappings.put(place, mapping);
      }
    } catch (DeviceException e) {
      return null;
    }
    mapping.users++;
    return new Mapped(peer, theirs[1], theirs[3], mapping.address + theirs[4]);
  }

  /** Unmaps everything. */
  @Override
  public void close() {
    List<Mapping> all = List.copyOf(mappings.values());
    mappings.clear();
    close(all);
  }
}
