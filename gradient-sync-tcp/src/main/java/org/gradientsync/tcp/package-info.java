/**
 * Ranks that reach each other by TCP, with the JDK's sockets: a job of processes, or of threads,
 * that needs no MPI.
 *
 * <p><b>Start.</b> {@link org.gradientsync.tcp.TcpLauncher} reads torchrun's variables or the
 * settings {@code tcp.*}. Rank 0 listens at the master's port. The others connect to it, say where
 * they listen, and get the addresses of all once all have come. Two ranks connect when one of them
 * first starts a message for the other.
 *
 * <p><b>Handshake.</b> The connector sends a hello with its role, rank, size, the job's id and a
 * nonce; the acceptor sends a nonce; each then proves by HMAC-SHA256 over all of that that it has
 * the job's secret. Nothing else is read before. All parts have a fixed size, connections that have
 * proved nothing are few and short-lived, and no other thread waits for them. What follows is
 * neither encrypted nor signed.
 *
 * <p><b>Messages.</b> Frames of four ints, big-endian: type, tag, length, id. A message of up to 64
 * KiB is sent at once with its payload, as long as the peer's window of 4 MiB for early messages
 * has room. Others are announced, and sent in pieces of 1 MiB, straight from memory to memory, once
 * the peer has granted them because it has a receiver. So what comes early takes bounded memory,
 * and a long message holds up no other tag.
 *
 * <p><b>The way of a message.</b> An Endpoint has a Peer for each other rank, and each Peer a Link,
 * which is the connection. A SendMessage goes to its peer's Outbox, which the Link writes; what it
 * reads, the peer's Inbox gives to the ReceiveMessage with that tag, or keeps.
 *
 * <p><b>Progress.</b> One lock guards all messages of a rank. Whoever starts or tests a message
 * also advances the others; while the program computes, the thread that accepts connections does,
 * every millisecond. Sockets are not blocking.
 *
 * <p><b>Losses.</b> A connection that ends without a goodbye means that its rank has died; one that
 * the system has given up, because nobody answers, that it cannot be reached, and may live.
 *
 * <p><b>Joining.</b> A process that joins a job connects to the same address, and says which
 * settings it has. It waits in the {@link org.gradientsync.tcp.Lobby} until the ranks, after a
 * step, invite it to a new job of all; one with another version or other settings is refused there,
 * and nobody else notices.
 */
package org.gradientsync.tcp;
