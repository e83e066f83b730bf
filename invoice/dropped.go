package invoice
