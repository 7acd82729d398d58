package org.gradientsync.tcp;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * How two ranks prove to each other that they have the job's secret. All parts have a fixed size:
 * the connector's {@link Hello}, the acceptor's nonce, the connector's proof, the acceptor's status
 * and proof. A proof is an HMAC-SHA256 of everything said before. A connector that does not
 * register then confirms, so that the acceptor uses no connection that has been given up meanwhile.
 */
final class Handshake {
  /** Changes when ranks of two versions could not talk. */
  static final int PROTOCOL = 4;

  static final long MAGIC = 0x4753594e43544350L; // GSYNCTCP
  static final int NONCE = 32;
  static final int PROOF = 32;
  static final int JOB = 16;

  /** What one that joins a job sends behind its {@link Member}: its settings, as text. */
  static final int SETTINGS = 256;

  static final int CHALLENGE = Long.BYTES + Integer.BYTES + NONCE;
  static final int ANSWER = Integer.BYTES + PROOF;
  static final int CONFIRMATION = 1; // any byte

  // What the acceptor answers.
  static final int OK = 0;
  static final int OTHER_SECRET = 1;
  static final int OTHER_JOB = 2;
  static final int CROSSED = 3;
  static final int STARTED = 4;

  private static final SecureRandom RANDOM = new SecureRandom();

  /**
   * The connector's first words.
   *
   * @param register whether it registers with rank 0, or connects to a rank that it knows
   * @param joins whether it registers to join a job that has started
   * @param rank the connector's number
   * @param size the number of ranks that it expects
   * @param target the number of the rank that it expects here
   * @param job the job's id, zeros before it has one
   * @param nonce the connector's random bytes
   */
  record Hello(
      boolean register, boolean joins, int rank, int size, int target, byte[] job, byte[] nonce) {
    static final int BYTES = Long.BYTES + 5 * Integer.BYTES + JOB + NONCE;

    byte[] encode(int protocol) {
      return ByteBuffer.allocate(BYTES)
          .putLong(MAGIC)
          .putInt(protocol)
          .putInt(joins ? 2 : register ? 1 : 0)
          .putInt(rank)
          .putInt(size)
          .putInt(target)
          .put(job)
          .put(nonce)
          .array();
    }

    /** Returns null if no rank of this protocol has written that. */
    static Hello decode(byte[] bytes) {
      ByteBuffer from = ByteBuffer.wrap(bytes);
      if (from.getLong() != MAGIC || from.getInt() != PROTOCOL) {
        return null;
      }
      int kind = from.getInt();
      int rank = from.getInt();
      int size = from.getInt();
      int target = from.getInt();
      byte[] job = new byte[JOB];
      byte[] nonce = new byte[NONCE];
      from.get(job).get(nonce);
      return kind < 0 || kind > 2 || rank < 0 || size < 1 || target < 0
          ? null
          : new Hello(kind > 0, kind == 2, rank, size, target, job, nonce);
    }
  }

  private final SecretKeySpec key;

  /**
   * @param secret the job's, or an empty text without one
   */
  Handshake(String secret) {
    // A key must not be empty; a job without a secret has this one.
    String text = "gradient-sync\0" + secret;
    key = new SecretKeySpec(text.getBytes(StandardCharsets.UTF_8), "HmacSHA256");
  }

  static byte[] random(int bytes) {
    byte[] random = new byte[bytes];
    RANDOM.nextBytes(random);
    return random;
  }

  /** The acceptor's first words. */
  static byte[] challenge(byte[] nonce) {
    return ByteBuffer.allocate(CHALLENGE).putLong(MAGIC).putInt(PROTOCOL).put(nonce).array();
  }

  byte[] connectorProof(byte[] hello, byte[] nonce) {
    return proof("connector", hello, nonce, OK);
  }

  /** The acceptor's last words. */
  byte[] answer(byte[] hello, byte[] nonce, int status) {
    return ByteBuffer.allocate(ANSWER)
        .putInt(status)
        .put(proof("acceptor", hello, nonce, status))
        .array();
  }

  static boolean same(byte[] proof, byte[] expected) {
    return MessageDigest.isEqual(proof, expected); // takes the same time wherever they differ
  }

  private byte[] proof(String role, byte[] hello, byte[] nonce, int status) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(key);
      mac.update(role.getBytes(StandardCharsets.US_ASCII));
      mac.update((byte) status);
      mac.update(hello);
      mac.update(nonce);
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has HmacSHA256", e);
    }
  }
}
