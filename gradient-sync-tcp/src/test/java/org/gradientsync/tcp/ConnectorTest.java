package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;

/** What a rank learns of another one that it cannot connect to. */
class ConnectorTest {
  private static final long LIMIT_NANOS = 1_500_000_000L;

  private static String whyLost(int port) {
    Member[] members =
        Stream.of(1, port)
            .map(at -> new InetSocketAddress(InetAddress.getLoopbackAddress(), at))
            .map(address -> new Member(address, -1, "", RankPlace.own("x")))
            .toArray(Member[]::new);
    Endpoint endpoint = new Endpoint(0, 2);
    try (Connector connector =
        new Connector(
            0, members, new byte[Handshake.JOB], new Handshake(""), null, endpoint, LIMIT_NANOS)) {
      endpoint.setConnector(connector::connect);
      Message message = endpoint.receiver(ByteBuffer.allocateDirect(4), 1, 7);
      message.start();
      return assertThrows(
              RankLostException.class,
              () -> {
                while (!message.test()) {
                  Thread.sleep(1);
                }
              })
          .getMessage();
    }
  }

  /** As behind a firewall that drops what comes. */
  @Test
  void aRankThatDoesNotAnswer() throws Exception {
    List<SocketChannel> waiting = new ArrayList<>();
    try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      for (int i = 0; i < 8; i++) { // until the system takes no more
        SocketChannel channel = SocketChannel.open();
        channel.configureBlocking(false);
        channel.connect(silent.getLocalSocketAddress());
        waiting.add(channel);
      }
      int port = silent.getLocalPort();
      String text = whyLost(port);
      String expected = "it cannot be reached at localhost/127.0.0.1:" + port + ": ";
      assertTrue(text.contains(expected), text);
      assertTrue(text.endsWith("timed out"), text);
    } finally {
      for (SocketChannel channel : waiting) {
        channel.close();
      }
    }
  }

  @Test
  void aRankThatListensNoMore() throws Exception {
    int port = Ranks.freePort();
    String text = whyLost(port);
    assertEquals(
        "rank 1 is lost: it cannot be reached at localhost/127.0.0.1:"
            + port
            + ": Connection refused",
        text);
  }
}
