/** What plots have in common. */
package org.gradientsync.tools.plot;
