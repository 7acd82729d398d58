package org.gradientsync.tcp;

import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Comparator;
import java.util.stream.Collectors;
import org.gradientsync.UnavailableException;

/** Which of this machine's addresses to use. */
final class Interfaces {
  private Interfaces() {}

  /**
   * The address of the interface that the user has named, or null.
   *
   * @param master the address to choose if the interface has it; otherwise one of the same family
   *     is preferred
   * @throws UnavailableException if there is none, if the job could be reached from other machines
   *     and has no secret, or if an address means nothing to other ranks
   */
  static InetAddress chosen(Coordinates own, InetAddress master) {
    if (isOfOneLink(master)) {
      throw new UnavailableException(
          "the master's address is link-local, and ranks do not tell each other of which interface: "
              + own
              + "; choose a global or an IPv4 address");
    }
    InetAddress chosen = own.network().isEmpty() ? null : ofNetwork(own, master);
    boolean isOfMachine =
        master.isLoopbackAddress() && (chosen == null || chosen.isLoopbackAddress());
    if (own.secret().isEmpty() && !isOfMachine) {
      throw new UnavailableException(
          "no secret, and the job's port can be reached from other machines: "
              + own
              + "; set GRADIENTSYNC_SECRET, or tcp.secret, to the same long random text on all ranks");
    }
    return chosen;
  }

  private static InetAddress ofNetwork(Coordinates own, InetAddress master) {
    try {
      NetworkInterface network = NetworkInterface.getByName(own.network());
      if (network != null && network.isLoopback() && master.isLoopbackAddress()) {
        return master; // it has all of 127.0.0.0/8, and lists one
      }
      if (network != null) {
        return Collections.list(network.getInetAddresses()).stream()
            .filter(address -> !isOfOneLink(address))
            .min(
                Comparator.comparing((InetAddress address) -> !address.equals(master))
                    .thenComparing(address -> address.getClass() != master.getClass()))
            .orElseThrow(() -> none(own, "it has no address that other ranks can use", null));
      }
      InetAddress address = InetAddress.getByName(own.network());
      if (!isHere(address) || isOfOneLink(address)) {
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
        "no such network interface: tcp.interface=%s, rank=%s: %s"
            .formatted(own.network(), own.rank(), why),
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

  /** Whether an address is of use only with the name of an interface, which ranks do not send. */
  private static boolean isOfOneLink(InetAddress address) {
    return address instanceof Inet6Address && address.isLinkLocalAddress();
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
