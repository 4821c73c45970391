package terminal

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Printer prints a server's answer for people: text as text, everything else by name, or
// saved to files.
type Printer struct {
	Terminal *Terminal
	Output   string // a file or a folder; empty: nothing is saved
	Name     string // the beginning of file names in a folder
	Link     string // the command that reads a resource; may be empty
	Failed   bool   // the answer is an error: nothing is saved

	texts []string // to be printed, or saved if there is nothing else
	blobs int      // number of contents other than text
	saved int
	err   error // of the first file that could not be saved
}

// saves reports whether files are written.
func (p *Printer) saves() bool { return p.Output != "" && !p.Failed }

// Result prints the result of a tool.
func (p *Printer) Result(result []byte) error {
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		p.Content(item)
	}
	structured := rawjson.Get(result, "structuredContent")
	if len(p.texts) == 0 && p.blobs == 0 && !rawjson.IsNull(structured) {
		if !p.saves() {
			return p.Terminal.WriteJSON(structured)
		}
		p.texts = append(p.texts, string(structured))
	}
	return p.Flush()
}

// Content prints one item of a result or a prompt.
func (p *Printer) Content(item []byte) {
	switch kind := rawjson.GetString(item, "type"); kind {
	case "text":
		p.texts = append(p.texts, rawjson.GetString(item, "text"))
	case "image", "audio":
		p.blob(kind, rawjson.GetString(item, "mimeType"), rawjson.GetString(item, "data"))
	case "resource":
		p.Resource(rawjson.Get(item, "resource"))
	case "resource_link":
		p.texts = append(p.texts, p.linked(item))
	default:
		p.Tell("[%s, %s; --json shows it]", plain.Line(cmp.Or(kind, "content without a type")), plain.Count(len(item), "byte"))
	}
}

// Resource prints the contents of a resource.
func (p *Printer) Resource(contents []byte) {
	if text, ok := rawjson.String(rawjson.Get(contents, "text")); ok {
		p.texts = append(p.texts, text)
		return
	}
	p.blob("resource "+rawjson.GetString(contents, "uri"), rawjson.GetString(contents, "mimeType"), rawjson.GetString(contents, "blob"))
}

// linked returns a link to a resource, with the command that reads it.
func (p *Printer) linked(item []byte) string {
	text := "link " + rawjson.GetString(item, "uri")
	for _, key := range []string{"name", "mimeType"} {
		if more := rawjson.GetString(item, key); more != "" {
			text += ", " + more
		}
	}
	if p.Link != "" {
		text += "; read it with: " + p.Link + " " + plain.Shell(rawjson.GetString(item, "uri"))
	}
	return "[" + plain.Line(text) + "]"
}

// blob saves or names content other than text.
func (p *Printer) blob(kind, mimeType, data string) {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		content, err = base64.RawStdEncoding.DecodeString(data)
	}
	p.blobs++
	what := strings.TrimSpace(plain.Line(kind + " " + mimeType))
	size := plain.Count(len(content), "byte")
	switch {
	case err != nil:
		p.Tell("[%s, which is not valid base64; --json shows it]", what)
	case p.Failed:
		p.Tell("[%s, %s; --json shows it]", what, size)
	case !p.saves():
		p.Tell("[%s, %s; save with --output]", what, size)
	default:
		p.save(what, mimeType, content)
	}
}

// Tell prints the texts so far, and then a line.
func (p *Printer) Tell(format string, args ...any) {
	p.printTexts()
	fmt.Fprintf(p.Terminal.Stdout, format+"\n", args...)
}

func (p *Printer) printTexts() {
	for _, text := range p.texts {
		p.Terminal.printText(text)
	}
	p.texts = nil
}

// Flush prints the remaining texts, or saves them if there was nothing else to save.
func (p *Printer) Flush() error {
	switch text := strings.Join(p.texts, "\n") + "\n"; {
	case !p.saves() || p.blobs > 0:
		p.printTexts()
	case len(p.texts) == 0:
		p.Tell("[nothing came back, and nothing was saved]")
	default:
		p.texts = nil
		p.save("text", "text/plain", []byte(text))
	}
	return p.err
}

// save writes content to a file, and prints what was saved.
func (p *Printer) save(what, mimeType string, content []byte) {
	file, err := p.write(mimeType, content)
	if err != nil {
		p.err = cmp.Or(p.err, err)
		return
	}
	p.Tell("[%s, %s, saved as %s]", what, plain.Count(len(content), "byte"), file)
}

// write writes a file: --output itself, further files beside it, or new files if --output
// is a folder. Only --output itself is overwritten.
func (p *Printer) write(mimeType string, content []byte) (string, error) {
	p.saved++
	if IsFolder(p.Output) {
		if err := os.MkdirAll(p.Output, 0o755); err != nil {
			return "", err
		}
		return saveNew(filepath.Join(p.Output, fileName(p.Name)), 1, ending(mimeType), content)
	}
	if p.saved == 1 {
		return p.Output, os.WriteFile(p.Output, content, 0o644)
	}
	named := filepath.Ext(p.Output)
	kind, _, _ := mime.ParseMediaType(mimeType)
	wanted := named
	if of, _, _ := mime.ParseMediaType(mime.TypeByExtension(named)); of != kind {
		wanted = ending(mimeType)
	}
	return saveNew(strings.TrimSuffix(p.Output, named), p.saved, wanted, content)
}

// saveNew writes a new file. Its name has the first free number from n on.
func saveNew(base string, n int, ending string, content []byte) (string, error) {
	for ; ; n++ {
		file := fmt.Sprintf("%s-%d%s", base, n, ending)
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(content)
		return file, errors.Join(err, f.Close())
	}
}

// IsFolder reports whether the path of --output is a folder, or ends like one.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator))
}

// notInFileName matches everything in a name that could leave the folder.
var notInFileName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

func fileName(name string) string {
	name = notInFileName.ReplaceAllString(name, "_")
	return name[:min(len(name), 64)]
}

// endings are the file name endings of common types. The system's own table may have
// several for a type, in any order.
var endings = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip", "text/plain": ".txt", "text/html": ".html",
}

// ending returns the file name ending for a type.
func ending(mimeType string) string {
	kind, _, _ := mime.ParseMediaType(mimeType)
	if known, ok := endings[kind]; ok {
		return known
	}
	if all, err := mime.ExtensionsByType(kind); err == nil && len(all) > 0 {
		return all[0]
	}
	return ".bin"
}
