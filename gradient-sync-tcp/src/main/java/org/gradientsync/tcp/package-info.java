/**
 * Ranks that reach each other by TCP, with the JDK's sockets: a job of processes, or of threads,
 * that needs no MPI.
 *
 * <p><b>Start.</b> {@link TcpLauncher} reads torchrun's variables or the settings {@code tcp.*}.
 * Rank 0 listens at the master's port. The others connect to it, say where they listen, and get all
 * addresses once all have come. Two ranks connect when one first starts a message for the other.
 *
 * <p><b>Handshake.</b> The connector sends a hello with its role, rank, size, the job's id and a
 * nonce; the acceptor sends a nonce; each then proves the job's secret by HMAC-SHA256 over all of
 * that. Nothing else is read before. The acceptor uses the connection once the connector confirms
 * that it has not given up waiting, and closes it without that after 10 seconds. All parts have a
 * fixed size, and connections that have proved nothing are few and short-lived. What follows is
 * neither encrypted nor signed.
 *
 * <p><b>Messages.</b> Frames of four ints, big-endian: type, tag, length, id. Up to 64 KiB are sent
 * at once, while the peer's window of 4 MiB for early messages has room; they are copied, so that
 * several travel in one packet. Longer messages are announced, and sent in pieces of 1 MiB, from
 * memory to memory, once the peer has a receiver. No sizes are set for the sockets' buffers,
 * because the system then enlarges them as a connection needs; a size that was set would stay.
 *
 * <p><b>The way of a message.</b> An {@link Endpoint} has a {@link Peer} for each other rank, and
 * each Peer a {@link Link}, its connection. A SendMessage goes to its peer's {@link Outbox}, which
 * the Link writes; what it reads, the {@link Inbox} gives to the ReceiveMessage with that tag, or
 * keeps. One lock guards all messages of a rank. Whoever starts or tests one also advances the
 * others; while the program computes, the thread that accepts connections does.
 *
 * <p><b>Losses.</b> A connection that ends without a goodbye means that its rank has died; one that
 * the system has given up, because nobody answers, that it cannot be reached, and may live. A
 * process that joins waits in the {@link Lobby} until the ranks invite it to a new job of all.
 */
package org.gradientsync.tcp;
