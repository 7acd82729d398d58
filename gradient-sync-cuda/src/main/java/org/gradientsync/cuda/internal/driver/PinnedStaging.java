package org.gradientsync.cuda.internal.driver;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.Pointer;
import org.gradientsync.core.host.HostBuffers;
import org.gradientsync.spi.HostElement;
import org.gradientsync.spi.Resources;

/**
 * Copies between Java memory and GPU memory through two page-locked buffers, so that the CPU fills
 * or empties one while the GPU copies the other. The GPU itself can read ordinary memory only
 * slowly, and the Java heap not at all while the garbage collector moves it.
 */
public final class PinnedStaging implements AutoCloseable {
  private static final int PIECE_BYTES = 2 << 20;

  private final Gpu gpu;
  private final ByteBuffer[] pieces = new ByteBuffer[2];
  private final Pointer[] pointers = new Pointer[2];
  private final GpuEvent[] done = new GpuEvent[2];
  private final Resources resources = new Resources();

  /** The piece for the next upload, which is not the last one used: that may still be copied. */
  private int next;

  public PinnedStaging(Gpu gpu) {
    this.gpu = gpu;
    try {
      for (int i = 0; i < 2; i++) {
        ByteBuffer piece = HostBuffers.allocate(PIECE_BYTES);
        pieces[i] = piece;
        gpu.api().pageLock(piece);
        resources.add(() -> gpu.api().pageUnlock(piece));
        pointers[i] = gpu.api().pointer(piece, 0);
        done[i] = resources.add(GpuEvent.create(gpu, false));
      }
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  public synchronized void upload(Buffer source, long address, long bytes, GpuStream stream) {
    gpu.makeCurrent();
    int size = HostElement.of(source).size();
    for (long at = 0; at < bytes; at += PIECE_BYTES) {
      int slot = next;
      next = 1 - next;
      int length = (int) Math.min(PIECE_BYTES, bytes - at);
      done[slot].await();
      ByteBuffer piece = pieces[slot].slice(0, length).order(ByteOrder.nativeOrder());
      HostBuffers.copy(
          source,
          source.position() + (int) (at / size),
          HostElement.of(source).view(piece),
          0,
          length / size);
      gpu.api()
          .copyToDevice(gpu.api().pointer(address + at), pointers[slot], length, stream.handle());
      stream.record(done[slot]);
    }
  }

  public synchronized void download(long address, long bytes, GpuStream stream, Buffer target) {
    gpu.makeCurrent();
    int size = HostElement.of(target).size();
    for (long at = 0; at < bytes + PIECE_BYTES; at += PIECE_BYTES) {
      if (at < bytes) {
        int slot = (int) (at / PIECE_BYTES & 1);
        done[slot].await();
        int length = (int) Math.min(PIECE_BYTES, bytes - at);
        gpu.api()
            .copyToHost(pointers[slot], gpu.api().pointer(address + at), length, stream.handle());
        stream.record(done[slot]);
      }
      long previous = at - PIECE_BYTES; // the piece enqueued in the previous iteration
      if (previous >= 0) {
        int slot = (int) (previous / PIECE_BYTES & 1);
        done[slot].await();
        int length = (int) Math.min(PIECE_BYTES, bytes - previous);
        ByteBuffer piece = pieces[slot].slice(0, length).order(ByteOrder.nativeOrder());
        HostBuffers.copy(
            HostElement.of(target).view(piece),
            0,
            target,
            target.position() + (int) (previous / size),
            length / size);
      }
    }
  }

  @Override
  public void close() {
    Resources.closeAll(done[0]::await, done[1]::await, resources);
  }
}
