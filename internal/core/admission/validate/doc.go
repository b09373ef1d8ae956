// Package validate defaults and validates our own kinds, with the messages of Karmada. It decides what may be stored;
// controller/admission calls it and answers the client. It does not repeat the validation of the schemas.
package validate
