package org.gradientsync.mpi.direct;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.gradientsync.UnavailableException;
import org.junit.jupiter.api.Test;

/** Tests the texts for an MPI that cannot be used. None is loaded. */
class DirectLibraryTest {
  private static final Map<String, String> MPICH = Map.of("PMI_SIZE", "2", "PMI_RANK", "1");

  @Test
  void noMpiIsOneSentence() {
    assertEquals(
        "there is no MPI of the kind that started this rank: launcher=MPICH, libraries=libmpi.so.12"
            + " or libmpich.so.12 or libmpi_abi.so.1, reason=no such file; install it, add its"
            + " folder to LD_LIBRARY_PATH, or set mpi.binding to its path",
        message("", MPICH));
    assertTrue(message("", Map.of()).startsWith("there is no MPI: libraries=libmpi.so.40 or "));
  }

  @Test
  void aPathThatDoesNotLoadIsNamed() {
    assertEquals(
        "this MPI does not load: mpi.binding=/a/libmpi.so, reason=no such file",
        message("/a/libmpi.so", MPICH));
  }

  @Test
  void versionsAreReadFromWhatLibrariesTell() {
    assertEquals(
        "Open MPI v4.1.4", DirectMpi.versionIn("Open MPI v4.1.4, package: Debian, ident: 4.1.4"));
    String mpich = DirectMpi.versionIn("MPICH Version:\t4.0.2\nMPICH Release date:\tThu");
    assertEquals("MPICH Version: 4.0.2", mpich);
    assertTrue(MpichAbi.isNameOf(mpich));
    assertTrue(MpichAbi.isNameOf("Intel(R) MPI Library 2021.11 for Linux* OS"));
    assertFalse(MpichAbi.isNameOf("Open MPI v4.1.4"));
  }

  private static String message(String asked, Map<String, String> environment) {
    DirectLibrary library =
        new DirectLibrary(
            file -> {
              throw new UnsatisfiedLinkError("Unable to load library 'x':\nno such file\nmore");
            });
    return assertThrows(
            UnavailableException.class, () -> library.get(asked, "mpi.binding", environment))
        .getMessage();
  }
}
