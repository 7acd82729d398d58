/**
 * Host memory as a device, and arithmetic on it with the promised bits.
 *
 * <p>{@link HostDevice} allocates {@link HostBuffer}s outside the Java heap. A {@link HostMemory}
 * is a row of segments, because a Java buffer ends at 2 GiB. Memory that other processes of the
 * node read is a file of {@link SharedFiles}, small ones a part of one of its {@link SharedBlocks}.
 *
 * <p>{@link HostArithmetic} reduces in rank order: an {@link Accumulator} copies blocks of all
 * sources into small arrays, where the JIT compiler vectorizes. It adds in the accumulator type,
 * which is wider for elements of 16 bits, and rounds to the element's type at the end. There is one
 * for each kind of element: {@link HalfAccumulator}, {@link FloatAccumulator}, {@link
 * DoubleAccumulator}, {@link IntAccumulator}, {@link LongAccumulator}. {@link HostPieces} adds
 * squares and scales in a fixed order, {@link HostRows} adds up rows, {@link FiniteScan} looks for
 * NaN and infinities, {@link Denormals} checks that the processor keeps small numbers.
 *
 * <p>{@link FreeMemory}, {@link CgroupMemory} and {@link MappingLimit} refuse an allocation that
 * Linux would answer by killing a process. {@link ShutdownHooks} finds those of the program.
 */
package org.gradientsync.core.host;
