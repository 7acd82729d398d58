/** Training in a barrier stage of Apache Spark. */
package org.gradientsync.examples.spark;
