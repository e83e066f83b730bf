package checkout

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed web
var builtIn embed.FS

// site holds the templates, languages and assets, built in or replaced by the host. It is read once.
type site struct {
	templates *template.Template
	languages languages
	assets    map[string]asset  // by hashed name
	hashed    map[string]string // hashed name by name
}

// asset is one file under assets/.
type asset struct {
	contentType string
	plain, gzip []byte // gzip is nil if it is not smaller than plain
}

// newSite reads the files of over. Files that it lacks are built in.
func newSite(over fs.FS) (*site, error) {
	own, err := fs.Sub(builtIn, "web")
	if err != nil {
		return nil, err
	}

	layers := []fs.FS{own}
	if over != nil {
		layers = append(layers, over)
	}

	files := overlay(layers)

	s := &site{assets: map[string]asset{}, hashed: map[string]string{}}
	if err := s.readAssets(files); err != nil {
		return nil, err
	}

	if s.languages, err = loadLanguages(files); err != nil {
		return nil, err
	}

	s.templates = template.New("").
		Option("missingkey=error").
		Funcs(template.FuncMap{"asset": s.path, "has": s.has})

	names, err := fs.Glob(files, "*.html")
	if err != nil {
		return nil, err
	}

	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}

		if _, err := s.templates.New("file " + name).Parse(string(text)); err != nil {
			return nil, err
		}
	}

	for _, name := range []string{"page.html", "error.html"} {
		if s.templates.Lookup(name) == nil {
			return nil, fmt.Errorf("no template is called %s", name)
		}
	}

	return s, nil
}

// readAssets reads assets/*, hashes the names and compresses the contents.
func (s *site) readAssets(files fs.FS) error {
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return err
	}

	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}

		name = path.Base(name)
		hash := sha256.Sum256(data)
		ext := path.Ext(name)
		hashed := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(hash[:6]) + ext
		s.assets[hashed] = asset{contentType: contentType(ext, data), plain: data, gzip: gzipBytes(data)}
		s.hashed[name] = hashed
	}

	return nil
}

// path implements the template function asset: the hashed address of a file of assets/, relative to
// View.Root. The name changes with the bytes, so it is cacheable for good.
func (s *site) path(name string) (string, error) {
	hashed, ok := s.hashed[name]
	if !ok {
		return "", fmt.Errorf("there is no assets/%s", name)
	}

	return "assets/" + hashed, nil
}

// has implements the template function has: whether assets/ has the file.
func (s *site) has(name string) bool {
	_, ok := s.hashed[name]
	return ok
}

// contentType returns the media type of a file by its extension, else by its first bytes.
func contentType(ext string, data []byte) string {
	switch ext { // does not depend on the system's table
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	}

	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}

	return http.DetectContentType(data)
}

// gzipBytes returns the compressed data, or nil if it is not smaller.
func gzipBytes(data []byte) []byte {
	var b bytes.Buffer

	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}

	if _, err := w.Write(data); err != nil {
		panic(err) // a bytes.Buffer does not fail
	}

	if err := w.Close(); err != nil {
		panic(err)
	}

	if b.Len() >= len(data) {
		return nil
	}

	return b.Bytes()
}

// overlay is a stack of file systems; later ones hide files of earlier ones.
type overlay []fs.FS

// layersOf returns the layers of a file system, the lowest first.
func layersOf(files fs.FS) []fs.FS {
	if o, ok := files.(overlay); ok {
		return o
	}

	return []fs.FS{files}
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	for _, layer := range slices.Backward(o) {
		f, err := layer.Open(name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}

	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS; the names are those of all layers.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	byName := map[string]fs.DirEntry{}
	found := false

	for _, layer := range o {
		entries, err := fs.ReadDir(layer, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return nil, err
		}

		found = true

		for _, e := range entries {
			byName[e.Name()] = e
		}
	}

	if !found {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}

	all := make([]fs.DirEntry, 0, len(byName))
	for _, e := range byName {
		all = append(all, e)
	}

	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })

	return all, nil
}
