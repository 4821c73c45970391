package validate

import (
	"errors"

	"github.com/xeipuuv/gojsonschema"
)

var errClosed = errors.New("only references within the schema are followed")

// compileGojsonschema compiles a reduced schema in the words of draft 7. What
// differs between the drafts is settled before.
func compileGojsonschema(root any) (func(any) bool, error) {
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	// NewGoLoader copies: gojsonschema rewrites the references it is given.
	schema, err := loader.Compile(closed{gojsonschema.NewGoLoader(root)})
	if err != nil {
		return nil, err
	}
	return func(arguments any) bool {
		result, err := schema.Validate(gojsonschema.NewRawLoader(arguments))
		return err != nil || result.Valid()
	}, nil
}

// closed is a schema from which no reference leads to a file or a URL, both of
// which gojsonschema reads by default.
type closed struct{ gojsonschema.JSONLoader }

func (closed) LoaderFactory() gojsonschema.JSONLoaderFactory { return refuser{} }

// refuser stands in for every document that a reference asks for.
type refuser struct{ gojsonschema.JSONLoader }

func (r refuser) New(string) gojsonschema.JSONLoader { return r }
func (refuser) LoadJSON() (any, error)               { return nil, errClosed }
