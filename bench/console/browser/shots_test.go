package browser

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "write the pictures of the guide into this `folder`")

// shot writes the window as a PNG of 256 colours, which is a third of the size.
func (b *tab) shot(name string) {
	b.t.Helper()
	var data []byte
	b.do(emulation.SetScrollbarsHidden(true), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		data, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(img)); err != nil {
		b.t.Fatal(err)
	}
	if out.Len() > 150<<10 {
		b.t.Errorf("%s has %d bytes", name, out.Len())
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// paletted returns a picture in its 256 most frequent colours.
func paletted(img image.Image) *image.Paletted {
	count, r := map[color.RGBA]int{}, img.Bounds()
	for y := range r.Dy() {
		for x := range r.Dx() {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	var all []color.RGBA
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	out, index := image.NewPaletted(r, nil), map[color.RGBA]uint8{}
	for _, c := range all[:min(256, len(all))] {
		out.Palette = append(out.Palette, c)
	}
	for _, c := range all {
		index[c] = uint8(out.Palette.Index(c))
	}
	for y := range r.Dy() {
		for x := range r.Dx() {
			out.SetColorIndex(x, y, index[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)])
		}
	}
	return out
}

// The pictures of the guide: the sample after its commands were tried, and what is seeded.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("make console-shots runs it")
	}
	in := staff(t, copied(t))
	in.receive(t)
	in.fail(t)
	in.flaky(t, "ok", "status/503?times=2", "retry-after/1", "reset", "status/500?times=9")
	for _, l := range []look{{1280, 800, false}, {1280, 800, true}} {
		b := signIn(t, in.instance, in.operator, l)
		b.worst("webhook:stuck")
		for name, path := range map[string]string{
			"now": "/", "call": "/now/flaky", "dead-letters": "/dead-letters", "redrive": "/dead-letters/redrive?all=true&destination=stuck",
		} {
			if l.dark && name != "now" { // the README's
				continue
			}
			b.visit(path)
			b.until("document.querySelector('main h1')")
			b.shot("console-" + name + "-" + l.scheme())
		}
	}
}
