// Package sim measures the simulator and drives its page in Chromium.
package sim
