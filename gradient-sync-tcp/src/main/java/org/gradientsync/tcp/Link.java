package org.gradientsync.tcp;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * The connection to one peer: writes the frames of started messages, and reads frames. Never
 * blocks. Callers hold the endpoint's lock.
 *
 * <p>Short messages are copied, so that several travel in one packet. The payload of {@link
 * Frame#DATA} is written from the sender's memory and read into the receiver's. A link takes little
 * memory until it carries messages: rank 0 of a large job has one to every rank.
 */
final class Link {
  private static final int IDLE_BYTES = 4 << 10; // at first, of the input and of the output
  private static final int IN_BYTES = 64 << 10;
  private static final int OUT_BYTES = 4 * Outbox.EAGER_BYTES;
  private static final int RESERVE = 4 << 10; // of the output, for frames without payload
  private static final int PIECE_BYTES = 1 << 20; // other messages' frames go between two pieces
  private static final long BUDGET = 4 << 20; // bytes in one call, so that no lock is held for long
  private static final int READS = 16;

  private final Peer peer;
  private final Outbox outbox;
  private final Inbox inbox;
  private final SocketChannel channel;
  private ByteBuffer in = ByteBuffer.allocateDirect(IDLE_BYTES);
  private ByteBuffer out = ByteBuffer.allocateDirect(IDLE_BYTES);

  // The piece that is being written: the frames before it and its header, then its payload.
  private final ByteBuffer[] piece = new ByteBuffer[2];
  private ByteBuffer head; // null before the first piece
  private SendMessage sending; // null between pieces

  // The payload that is being read.
  private int payloadLeft;
  private ByteBuffer target; // null if the payload is skipped
  private boolean ended; // the peer will write nothing more
  private boolean heard = true; // something has arrived since the last question

  Link(Peer peer, Outbox outbox, Inbox inbox, SocketChannel channel) {
    this.peer = peer;
    this.outbox = outbox;
    this.inbox = inbox;
    this.channel = channel;
  }

  SocketChannel channel() {
    return channel;
  }

  /** Whether something waits to be written. */
  boolean hasOutput() {
    return sending != null || out.position() > 0 || outbox.hasQueued();
  }

  /** Adds a frame without payload. */
  void put(int type, int tag, int length, int id) {
    if (out.remaining() < Frame.HEADER) {
      out = larger(out, 2 * out.capacity());
    }
    out.putInt(type).putInt(tag).putInt(length).putInt(id);
  }

  /** Whether an eager message can be added now. */
  boolean hasRoom(int payload) {
    if (out.capacity() < OUT_BYTES) {
      out = larger(out, OUT_BYTES);
    }
    return out.remaining() >= Frame.HEADER + payload + RESERVE;
  }

  private static ByteBuffer larger(ByteBuffer buffer, int bytes) {
    return ByteBuffer.allocateDirect(bytes).put(buffer.flip());
  }

  /** Adds an eager message. */
  void put(int tag, ByteBuffer payload) {
    put(Frame.EAGER, tag, payload.capacity(), 0);
    out.put(out.position(), payload, 0, payload.capacity());
    out.position(out.position() + payload.capacity());
  }

  /** Writes what the socket takes. */
  void flush() throws IOException {
    long written = 0;
    while (written < BUDGET) {
      if (sending == null) {
        outbox.admit(this);
        SendMessage next = outbox.nextGranted();
        if (next != null) {
          begin(next);
        } else if (out.position() == 0) {
          return;
        }
      }
      long bytes = sending == null ? writeFrames() : writePiece();
      if (bytes < 0) {
        return; // the socket is full
      }
      written += bytes;
    }
  }

  private long writeFrames() throws IOException {
    out.flip();
    int bytes = channel.write(out);
    boolean all = !out.hasRemaining();
    out.compact();
    return all ? bytes : -1;
  }

  private void begin(SendMessage message) {
    int length = Math.min(PIECE_BYTES, message.left());
    put(Frame.DATA, 0, length, message.remoteId());
    ByteBuffer frames = out;
    frames.flip();
    out = head == null ? ByteBuffer.allocateDirect(OUT_BYTES) : head.clear();
    head = frames;
    sending = message;
    piece[0] = head;
    piece[1] = message.piece(length);
  }

  private long writePiece() throws IOException {
    long bytes = channel.write(piece);
    if (piece[0].hasRemaining() || piece[1].hasRemaining()) {
      return -1;
    }
    SendMessage sent = sending;
    sending = null;
    piece[1] = null;
    outbox.pieceSent(sent);
    return bytes;
  }

  /** Reads what has arrived, at most a few MB. Returns false if nothing has. */
  boolean read() throws IOException {
    boolean any = false;
    for (int i = 0; i < READS && !ended; i++) {
      boolean direct = payloadLeft > 0 && target != null;
      int asked = direct ? payloadLeft : in.remaining();
      if (direct) {
        target.limit(target.position() + payloadLeft);
      }
      int bytes = channel.read(direct ? target : in);
      if (bytes < 0) {
        throw new EOFException("it has closed the connection");
      }
      any |= bytes > 0;
      heard |= any;
      if (direct) {
        payloadLeft -= bytes;
        if (payloadLeft == 0) {
          endPayload();
        }
      } else if (bytes > 0) {
        parse();
        if (bytes == asked && in.capacity() < IN_BYTES) {
          in = larger(in, IN_BYTES);
        }
      }
      if (bytes < asked) {
        break; // the socket is empty
      }
    }
    return any;
  }

  private void parse() throws IOException {
    in.flip();
    while (true) {
      if (payloadLeft > 0) {
        int bytes = Math.min(payloadLeft, in.remaining());
        if (target != null) {
          target.limit(target.position() + bytes);
          target.put(target.position(), in, in.position(), bytes);
          target.position(target.position() + bytes);
        }
        in.position(in.position() + bytes);
        payloadLeft -= bytes;
        if (payloadLeft > 0) {
          break;
        }
        endPayload();
      }
      if (in.remaining() < Frame.HEADER || ended) {
        break;
      }
      int type = in.getInt();
      int tag = in.getInt();
      int length = in.getInt();
      int id = in.getInt();
      if (type == Frame.EAGER || type == Frame.DATA) {
        target =
            type == Frame.EAGER ? inbox.eagerArrives(tag, length) : inbox.pieceArrives(id, length);
        payloadLeft = length;
        if (length == 0) {
          endPayload();
        }
      } else {
        ended = type == Frame.BYE;
        peer.control(type, tag, length, id);
      }
    }
    in.compact();
  }

  private void endPayload() {
    target = null;
    inbox.payloadArrived();
  }

  /** Whether something has arrived since the last call. */
  boolean wasHeard() {
    boolean before = heard;
    heard = false;
    return before;
  }

  boolean isSending(SendMessage message) {
    return sending == message;
  }

  /** Copies what is left of the piece of a message whose memory is needed. */
  void detach(SendMessage message) {
    if (sending == message) {
      ByteBuffer left = piece[1];
      piece[1] = ByteBuffer.allocateDirect(left.remaining()).put(left).flip();
    }
  }

  /** Skips the rest of the payload that is being read. */
  void skip() {
    target = null;
  }

  void close() {
    try {
      channel.close();
    } catch (IOException e) {
      // nothing is lost: all that counts has been read or is given up
    }
  }
}
