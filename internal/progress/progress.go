// Package progress shows the progress of long operations: a bar on a terminal, or a log line every
// few seconds. Both have the rate and the remaining time.
package progress

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	logEvery  = 5 * time.Second        // time between log lines
	drawEvery = 100 * time.Millisecond // time between updates of the bar
	barWidth  = 30                     // columns, without the numbers
)

// Meter shows the progress of an operation that consists of stages, one after the other. Each stage
// is about a number of bytes, or of something else. Only one goroutine may use a Meter. A nil Meter
// shows nothing.
type Meter struct {
	terminal io.Writer // nil: write to the log
	log      *slog.Logger

	stage, unit string
	total, done int64
	began       time.Time
	shown       time.Time // when the last line was logged
	bar         *progressbar.ProgressBar
}

// New returns a Meter that draws on a terminal or, if terminal is nil, writes to the log.
func New(terminal io.Writer, log *slog.Logger) *Meter { return &Meter{terminal: terminal, log: log} }

// Terminal returns a file if it is a terminal, otherwise nil.
func Terminal(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// Begin ends the current stage and begins one of total bytes.
func (m *Meter) Begin(stage string, total int64) { m.BeginCount(stage, "bytes", total) }

// BeginCount is Begin for another unit, such as keys.
func (m *Meter) BeginCount(stage, unit string, total int64) {
	if m == nil {
		return
	}
	m.End()
	m.stage, m.unit, m.total, m.done = stage, unit, total, 0
	m.began = time.Now()
	m.shown = m.began
	if m.terminal != nil && total > 0 {
		m.bar = progressbar.NewOptions64(
			total, progressbar.OptionSetWriter(m.terminal), progressbar.OptionSetDescription(stage),
			progressbar.OptionSetWidth(barWidth), progressbar.OptionShowBytes(unit == "bytes"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(drawEvery), progressbar.OptionClearOnFinish())
	}
}

// Add reports that n more bytes, or units, have been processed.
func (m *Meter) Add(n int) {
	if m == nil {
		return
	}
	m.done += int64(n)
	switch {
	case m.bar != nil:
		m.bar.Set64(min(m.done, m.total-1)) // End draws the last step
	case m.terminal == nil && time.Since(m.shown) >= logEvery:
		m.shown = time.Now()
		m.line()
	}
}

// End ends the stage. The bar is removed from the terminal.
func (m *Meter) End() {
	if m == nil || m.bar == nil {
		return
	}
	m.bar.Finish()
	m.bar = nil
}

// line logs the progress of the stage.
func (m *Meter) line() {
	took := time.Since(m.began)
	rate := float64(m.done) / took.Seconds()
	attributes := []any{m.unit, m.done, "of", m.total, m.unit + "_per_second", int64(rate)}
	if m.total > 0 {
		attributes = append(attributes, "percent", min(100, m.done*100/m.total))
	}
	if left := max(0, m.total-m.done); rate > 0 {
		seconds := time.Duration(float64(left) / rate * float64(time.Second))
		attributes = append(attributes, "left", fmt.Sprint(seconds.Round(time.Second)))
	}
	m.log.Info(m.stage, attributes...)
}
