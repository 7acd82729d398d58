package org.gradientsync.cuda.internal.nccl;

import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.LoaderMessage;
import org.gradientsync.spi.Settings;

/**
 * Finds NCCL and loads it, once per process: what the setting {@value #SETTING} names, or what the
 * system's loader finds, or what lies beside PyTorch.
 */
final class NcclLibrary {
  static final String SETTING = "nccl.library";

  /** The name by which the system's loader finds it. */
  static final String NAME = "libnccl.so.2";

  /** 2.18: from here on, an abort on another thread ends calls of any kind. */
  static final int OLDEST = 21800;

  private static final NcclLibrary OF_PROCESS =
      new NcclLibrary(JnaNccl::new, nccl -> ((JnaNccl) nccl).map(), NcclFiles::ofProcess);

  private final Function<String, Nccl> loader;
  private final Consumer<Nccl> mapping;
  private final Supplier<NcclFiles> files;
  private Nccl loaded; // or null
  private String chosen; // the setting when it was loaded

  /**
   * @param loader loads a library by path or name, or throws an {@link UnsatisfiedLinkError}
   * @param mapping prepares a library whose version is right; called once
   * @param files looks beside PyTorch
   */
  NcclLibrary(Function<String, Nccl> loader, Consumer<Nccl> mapping, Supplier<NcclFiles> files) {
    this.loader = loader;
    this.mapping = mapping;
    this.files = files;
  }

  static NcclLibrary ofProcess() {
    return OF_PROCESS;
  }

  /**
   * The library.
   *
   * @throws UnavailableException if there is none that can be used; the message is one line that
   *     says why
   */
  synchronized Nccl get(Settings settings) {
    String asked = settings.get(SETTING).orElse("");
    if (loaded == null) {
      Nccl found = asked.isEmpty() ? find() : named(asked);
      requireUsable(found);
      loaded = found;
      chosen = asked;
    } else if (!asked.isEmpty() && !asked.equals(chosen) && !asked.equals(loaded.library())) {
      throw new UnavailableException(
          "this process has loaded another NCCL: gradientsync.%s=%s, loaded=%s"
              .formatted(SETTING, asked, loaded.library()));
    }
    return loaded;
  }

  private Nccl named(String asked) {
    try {
      return loader.apply(asked);
    } catch (UnsatisfiedLinkError e) {
      throw new UnavailableException(
          "this NCCL does not load: gradientsync.%s=%s, reason=%s"
              .formatted(SETTING, asked, LoaderMessage.reason(e)),
          e);
    }
  }

  private Nccl find() {
    UnsatisfiedLinkError reason;
    try {
      return loader.apply(NAME);
    } catch (UnsatisfiedLinkError e) {
      reason = e;
    }
    for (Path file : files.get().find()) {
      try {
        return loader.apply(file.toString());
      } catch (UnsatisfiedLinkError e) {
        reason = e;
      }
    }
    throw new UnavailableException(
        "there is no NCCL: library=%s, reason=%s; install it, or set gradientsync.%s to its path"
            .formatted(NAME, LoaderMessage.reason(reason), SETTING),
        reason);
  }

  private void requireUsable(Nccl found) {
    if (found.version() < OLDEST) {
      throw new UnavailableException(
          "this NCCL is too old: version=%s, needed=%s, library=%s"
              .formatted(text(found.version()), text(OLDEST), found.library()));
    }
    try {
      mapping.accept(found);
    } catch (UnsatisfiedLinkError e) {
      throw new UnavailableException(
          "this NCCL lacks a function: library=%s, reason=%s"
              .formatted(found.library(), LoaderMessage.reason(e)),
          e);
    }
  }

  /** A version as users know it. */
  static String text(int version) {
    if (version < 10_000) { // before 2.9
      return version / 1000 + "." + version % 1000 / 100 + "." + version % 100;
    }
    return version / 10_000 + "." + version % 10_000 / 100 + "." + version % 100;
  }
}
