/**
 * Host memory as a device, and arithmetic on it with the promised bits.
 *
 * <p>{@link org.gradientsync.core.host.HostDevice} allocates {@link
 * org.gradientsync.core.host.HostBuffer}s outside the Java heap. A {@link
 * org.gradientsync.core.host.HostMemory} is a row of segments, because a Java buffer ends at 2 GiB.
 * Memory that other processes of the node read is a file of {@link
 * org.gradientsync.core.host.SharedFiles}, small ones a part of one of its {@link
 * org.gradientsync.core.host.SharedBlocks}.
 *
 * <p>{@link org.gradientsync.core.host.HostArithmetic} reduces in rank order: an {@link
 * org.gradientsync.core.host.Accumulator} copies blocks of all sources into small arrays, where the
 * JIT compiler vectorizes. It adds in the accumulator type, which is wider for elements of 16 bits,
 * and rounds to the element's type at the end. There is one for each kind of element: {@link
 * org.gradientsync.core.host.HalfAccumulator}, {@link org.gradientsync.core.host.FloatAccumulator},
 * {@link org.gradientsync.core.host.DoubleAccumulator}, {@link
 * org.gradientsync.core.host.IntAccumulator}, {@link org.gradientsync.core.host.LongAccumulator}.
 * {@link org.gradientsync.core.host.HostPieces} adds squares and scales in a fixed order, {@link
 * org.gradientsync.core.host.HostRows} adds up rows, {@link org.gradientsync.core.host.FiniteScan}
 * looks for NaN and infinities, {@link org.gradientsync.core.host.Denormals} checks that the
 * processor keeps small numbers.
 *
 * <p>{@link org.gradientsync.core.host.FreeMemory}, {@link org.gradientsync.core.host.CgroupMemory}
 * and {@link org.gradientsync.core.host.MappingLimit} refuse an allocation that Linux would answer
 * by killing a process. {@link org.gradientsync.core.host.ShutdownHooks} finds those of the
 * program.
 */
package org.gradientsync.core.host;
