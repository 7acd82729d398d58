/**
 * What the drawings of {@code gradient-sync perf} and of the examples have in common.
 *
 * <p>Curves are charts of XChart, whose axes {@code PlotTicks} numbers: sizes by powers of two,
 * logarithmic axes at 1, 2, 5 and 10. {@code Svg} writes them as files that browsers and GitHub
 * show, also drawings without a chart, such as timelines.
 *
 * <p>Used by {@link org.gradientsync.tools.perf}, and by the losses and timelines of {@code
 * org.gradientsync.examples}.
 */
package org.gradientsync.tools.plot;
