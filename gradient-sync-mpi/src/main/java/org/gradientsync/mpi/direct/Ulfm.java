package org.gradientsync.mpi.direct;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.BitSet;
import java.util.stream.IntStream;
import org.gradientsync.mpi.binding.MpiFailure;

/**
 * What lets the ranks of an Open MPI 5 live when others die: user-level failure mitigation. Other
 * MPIs may lack the functions, so they are looked up by name. The calls are rare.
 */
final class Ulfm {
  private static final String PROBE = "MPIX_Comm_failure_get_acked";
  private static final long KEY = 12; // MPI_FT

  private static volatile NativeLibrary library; // set before MPI is initialized

  private Ulfm() {}

  static void use(NativeLibrary newLibrary) {
    library = newLibrary;
  }

  private static void call(String function, Object... arguments) throws MpiFailure {
    Codes.check(library.getFunction(function).invokeInt(arguments));
  }

  /** Whether mpirun was asked for it. The other MPIs that have the functions have other values. */
  static boolean isOn(MpiAbi abi) throws MpiFailure {
    if (!abi.name().equals(OpenMpiAbi.NAME) || !Symbols.has(library, PROBE)) {
      return false;
    }
    NativeBlock value = NativeBlock.of(Long.BYTES);
    NativeBlock found = NativeBlock.of(Integer.BYTES);
    call("MPI_Comm_get_attr", abi.world(), KEY, value.address(), found.address());
    return found.bytes().getInt(0) != 0 && new Pointer(value.bytes().getLong(0)).getInt(0) != 0;
  }

  /** Acknowledges the ranks of a communicator that have died, and returns all of them. */
  static BitSet acknowledge(long comm, int size) throws MpiFailure {
    NativeBlock handles = NativeBlock.of(2 * Long.BYTES);
    long dead = handles.address();
    long all = dead + Long.BYTES;
    NativeBlock count = NativeBlock.of(Integer.BYTES);
    NativeBlock own = NativeBlock.of(size * Integer.BYTES);
    NativeBlock ranks = NativeBlock.of(size * Integer.BYTES);
    call("MPIX_Comm_failure_ack", comm);
    call(PROBE, comm, dead);
    int number;
    try {
      call("MPI_Comm_group", comm, all);
      try {
        call("MPI_Group_size", handles.bytes().getLong(0), count.address());
        number = count.bytes().getInt(0);
        own.bytes().asIntBuffer().put(IntStream.range(0, number).toArray());
        call(
            "MPI_Group_translate_ranks",
            handles.bytes().getLong(0),
            number,
            own.address(),
            handles.bytes().getLong(Long.BYTES),
            ranks.address());
      } finally {
        call("MPI_Group_free", all);
      }
    } finally {
      call("MPI_Group_free", dead);
    }
    BitSet found = new BitSet();
    for (int i = 0; i < number; i++) {
      found.set(ranks.bytes().getInt(i * Integer.BYTES));
    }
    return found;
  }
}
