package org.gradientsync.tcp;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.gradientsync.UnavailableException;

/** Which of this machine's addresses to use. */
final class Interfaces {
  private Interfaces() {}

  /**
   * The address of the interface that the user has named, or null.
   *
   * @param master an address of the same family is preferred
   */
  static InetAddress chosen(Coordinates own, InetAddress master) {
    if (own.network().isEmpty()) {
      return null;
    }
    try {
      NetworkInterface network = NetworkInterface.getByName(own.network());
      if (network != null) {
        List<InetAddress> all = Collections.list(network.getInetAddresses());
        return all.stream()
            .filter(address -> address.getClass() == master.getClass())
            .findFirst()
            .or(() -> all.stream().findFirst())
            .orElseThrow(() -> none(own, "it has no address", null));
      }
      InetAddress address = InetAddress.getByName(own.network());
      if (!isHere(address)) {
        throw none(own, others(), null);
      }
      return address;
    } catch (UnknownHostException e) {
      throw none(own, others(), e);
    } catch (IOException e) {
      throw none(own, e.getMessage(), e);
    }
  }

  private static UnavailableException none(Coordinates own, String why, IOException cause) {
    return new UnavailableException(
        "no such network interface: tcp.interface="
            + own.network()
            + ", rank="
            + own.rank()
            + ": "
            + why,
        cause);
  }

  private static String others() {
    try {
      return NetworkInterface.networkInterfaces()
          .map(NetworkInterface::getName)
          .collect(Collectors.joining(", ", "this machine has ", ""));
    } catch (SocketException e) {
      return String.valueOf(e.getMessage());
    }
  }

  static boolean isHere(InetAddress address) throws SocketException {
    return address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
  }

  static String hostName() throws UnknownHostException {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    } catch (IOException e) {
      return InetAddress.getLocalHost().getHostName();
    }
  }

  /**
   * What may keep the others away from rank 0, for texts.
   *
   * @param here whether the master's address is this machine's
   */
  static String where(Coordinates own, ServerSocketChannel server, boolean here)
      throws IOException {
    if (!here) {
      return "; " + own.host() + " is no address of this machine, where rank 0 listens";
    }
    InetAddress address = ((InetSocketAddress) server.getLocalAddress()).getAddress();
    String only = address.isLoopbackAddress() ? ", which only this machine reaches" : "";
    return address.getHostAddress().equals(own.host())
        ? ""
        : "; rank 0 listens at " + address.getHostAddress() + only;
  }

  /** Resolves the master's name. */
  static InetAddress master(Coordinates own) throws UnknownHostException {
    return InetAddress.getByName(own.host());
  }
}
