package org.gradientsync.mpi.direct;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.NativeClasses;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.binding.MpiComm;
import org.gradientsync.mpi.binding.MpiFailure;

/** MPI by calls of its C library. A process can load one. */
public final class DirectMpi implements MpiCalls {
  private static final int TEXT_BYTES = 8192 + 1; // MPI_MAX_LIBRARY_VERSION_STRING and more

  /** A function that returns a number through a pointer. */
  private interface Question {
    int ask(long answer);
  }

  private final String library;
  private final String version;
  private final MpiAbi abi;
  private final NativeBlock finalized = NativeBlock.of(Integer.BYTES); // the end asks many times

  private DirectMpi(String library, String version, MpiAbi abi) {
    this.library = library;
    this.version = version;
    this.abi = abi;
  }

  /**
   * Loads a library, for the rest of the process.
   *
   * @param library a path, or a name for the system's loader
   * @throws UnavailableException if JNA cannot be used
   * @throws UnsatisfiedLinkError if it does not load, lacks a function, or is of an unknown kind
   */
  static DirectMpi load(String library) {
    NativeClasses.requireJna(DirectMpi.class);
    NativeLibrary loaded = NativeLibrary.getInstance(library);
    Native.register(Functions.class, loaded);
    RequestCalls.use(loaded);
    Ulfm.use(loaded);
    NativeBlock text = NativeBlock.of(TEXT_BYTES);
    NativeBlock length = NativeBlock.of(Integer.BYTES);
    Functions.MPI_Get_library_version(text.address(), length.address());
    String version = versionIn(Codes.text(text));
    return new DirectMpi(library, version, abi(loaded, version));
  }

  private static MpiAbi abi(NativeLibrary library, String version) {
    if (StandardAbi.has(library)) {
      return StandardAbi.VALUES;
    }
    if (OpenMpiAbi.has(library)) {
      return OpenMpiAbi.of(library);
    }
    if (MpichAbi.isNameOf(version)) {
      return MpichAbi.VALUES;
    }
    throw new UnsatisfiedLinkError(
        "it is neither Open MPI nor of MPICH's kind: version=" + version);
  }

  /** The name and version at the beginning of MPI_Get_library_version's text. */
  static String versionIn(String text) {
    return text.lines().findFirst().orElse("").split(",")[0].replaceAll("\\s+", " ").trim();
  }

  /** The kind of MPI, for texts. */
  String kind() {
    return abi.name();
  }

  private static int answer(Question question) throws MpiFailure {
    NativeBlock answer = NativeBlock.of(Integer.BYTES);
    Codes.check(question.ask(answer.address()));
    return answer.bytes().getInt(0);
  }

  @Override
  public String library() {
    return library;
  }

  @Override
  public String version() {
    return version;
  }

  @Override
  public int serialized() {
    return abi.serialized();
  }

  @Override
  public int initialize() throws MpiFailure {
    int provided = answer(level -> Functions.MPI_Init_thread(0, 0, abi.serialized(), level));
    new DirectComm(abi, abi.world()).returnErrors();
    return provided;
  }

  @Override
  public boolean isInitialized() throws MpiFailure {
    return answer(Functions::MPI_Initialized) != 0;
  }

  @Override
  public boolean isFinalized() throws MpiFailure {
    Codes.check(Functions.MPI_Finalized(finalized.address()));
    return finalized.bytes().getInt(0) != 0;
  }

  @Override
  public int threadLevel() throws MpiFailure {
    return answer(Functions::MPI_Query_thread);
  }

  @Override
  public boolean isMainThread() throws MpiFailure {
    return answer(Functions::MPI_Is_thread_main) != 0;
  }

  @Override
  public String host() throws MpiFailure {
    NativeBlock text = NativeBlock.of(TEXT_BYTES);
    NativeBlock length = NativeBlock.of(Integer.BYTES);
    Codes.check(Functions.MPI_Get_processor_name(text.address(), length.address()));
    return Codes.text(text);
  }

  @Override
  public MpiComm world() {
    return new DirectComm(abi, abi.world());
  }

  @Override
  public boolean letsOthersLive() throws MpiFailure {
    return Ulfm.isOn(abi);
  }

  @Override
  public void finish() throws MpiFailure {
    Codes.check(Functions.MPI_Finalize());
  }
}
