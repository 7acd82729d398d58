/** Why a job is stuck: the deadlock detector, and the reports after a time-out. */
package org.gradientsync.core.diagnosis;
